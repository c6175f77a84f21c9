package tokens

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func storeDir(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "store")
	_, err := eventlog.Init(t.Context(), dir)
	require.NoError(t, err)
	return dir
}

func TestATokenIsKnownUntilItIsRevokedOrExpires(t *testing.T) {
	dir := storeDir(t)
	k := Keep(dir)
	_, err := k.Check("clt_"+strings.Repeat("A", 43), noon)
	require.ErrorIs(t, err, ErrRefused, "no file, no tokens")

	forever, secret, err := New(dir, Request{Role: Harness, Label: "worker", Now: noon})
	require.NoError(t, err)
	require.Len(t, secret, textLen)
	got, err := k.Check(secret, noon.AddDate(50, 0, 0))
	require.NoError(t, err)
	require.Equal(t, forever, got)

	short, expiring, err := New(dir, Request{Role: Auditor, Life: time.Hour, Now: noon})
	require.NoError(t, err)
	require.NotEqual(t, secret, expiring)
	got, err = k.Check(expiring, noon.Add(time.Hour-time.Nanosecond))
	require.NoError(t, err)
	require.Equal(t, Auditor, got.Role)
	_, err = k.Check(expiring, noon.Add(time.Hour))
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, err, eventlog.ErrUnauthorized)
	require.NoError(t, k.Still(short.ID, noon))
	require.ErrorIs(t, k.Still(short.ID, noon.Add(time.Hour)), ErrRefused)

	list, err := List(dir)
	require.NoError(t, err)
	require.Equal(t, []Token{forever, short}, list)

	was, err := Revoke(dir, forever.ID)
	require.NoError(t, err)
	require.Equal(t, forever, was)
	_, err = k.Check(secret, noon)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, k.Still(forever.ID, noon), ErrRefused)
	_, err = Revoke(dir, forever.ID)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}

// TestNearTokensAreRefused: no part, no other case, no longer form of a token
// is one.
func TestNearTokensAreRefused(t *testing.T) {
	dir := storeDir(t)
	_, secret, err := New(dir, Request{Role: Operator, Now: noon})
	require.NoError(t, err)
	k := Keep(dir)
	for _, near := range []string{"", "clt_", secret[4:], secret[:len(secret)-1], secret + "A", " " + secret, "CLT_" + secret[4:], "clt_" + strings.Repeat("A", 43), secret[:len(secret)-1] + "*"} {
		_, err := k.Check(near, noon)
		require.ErrorIs(t, err, ErrRefused, near)
	}
	_, err = k.Check(secret, noon)
	require.NoError(t, err)
}

// TestTheSecretIsNowhere: the file holds neither the token nor a part of it
// that would help, and nobody else may read it.
func TestTheSecretIsNowhere(t *testing.T) {
	dir := storeDir(t)
	_, secret, err := New(dir, Request{Role: Harness, Label: "ci", Now: noon})
	require.NoError(t, err)
	path := filepath.Join(dir, FileName)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(raw), secret[4:20])
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
}

// TestAFileInDoubtAdmitsNobody: not even with a token that is in it.
func TestAFileInDoubtAdmitsNobody(t *testing.T) {
	dir := storeDir(t)
	token, secret, err := New(dir, Request{Role: Operator, Now: noon})
	require.NoError(t, err)
	path := filepath.Join(dir, FileName)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	k := Keep(dir)
	line := strings.TrimSpace(string(good))
	for name, text := range map[string]string{
		"empty":          "",
		"cut":            line[:len(line)/2],
		"unknown key":    strings.Replace(line, `"version"`, `"x": 1, "version"`, 1),
		"duplicate key":  strings.Replace(line, `"version"`, `"version": 1, "version"`, 1),
		"other case":     strings.Replace(line, `"role"`, `"Role"`, 1),
		"newer":          strings.Replace(line, `"version": 1`, `"version": 2`, 1),
		"unknown role":   strings.Replace(line, `"operator"`, `"root"`, 1),
		"short hash":     strings.Replace(line, `"sha256": "`, `"sha256": "ab`, 1),
		"two of one id":  strings.Replace(line, "]", ","+line[strings.Index(line, "[")+1:strings.Index(line, "]")]+"]", 1),
		"more behind it": line + "{}",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := k.Check(secret, noon)
		require.ErrorIs(t, err, eventlog.ErrCorrupt, name)
		require.ErrorIs(t, k.Still(token.ID, noon), eventlog.ErrCorrupt, name)
		_, _, err = New(dir, Request{Role: Harness, Now: noon})
		require.ErrorIs(t, err, eventlog.ErrCorrupt, "%s: never overwritten", name)
	}
	require.NoError(t, os.WriteFile(path, good, 0o600))
	_, err = k.Check(secret, noon)
	require.NoError(t, err)

	require.NoError(t, os.Chmod(path, 0o640))
	_, err = k.Check(secret, noon)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	require.ErrorContains(t, err, "want 0600")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("IDENTITY", path))
	_, err = k.Check(secret, noon)
	require.Error(t, err)
}

// TestChangesAtATime: none of them is lost, and a reader never sees half a file.
func TestChangesAtATime(t *testing.T) {
	dir := storeDir(t)
	_, stays, err := New(dir, Request{Role: Auditor, Now: noon})
	require.NoError(t, err)
	const n = 20
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			token, _, err := New(dir, Request{Role: Harness, Label: fmt.Sprint(i), Now: noon})
			if err == nil && i%2 == 0 {
				_, err = Revoke(dir, token.ID)
			}
			if err == nil {
				_, err = Keep(dir).Check(stays, noon)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	list, err := List(dir)
	require.NoError(t, err)
	require.Len(t, list, 1+n/2)
	names, err := filepath.Glob(filepath.Join(dir, FileName+"*"))
	require.NoError(t, err)
	require.Len(t, names, 1, "nothing temporary is left")
}

func TestRefusedRequests(t *testing.T) {
	dir := storeDir(t)
	for _, r := range []Request{{Role: "root"}, {Role: ""}, {Role: "Operator"}, {Role: Harness, Label: "a\x1b[31m"}, {Role: Harness, Label: "a\xff"},
		{Role: Harness, Label: "a\u202eb"}, {Role: Harness, Life: -time.Second}} {
		_, _, err := New(dir, r)
		require.ErrorIs(t, err, eventlog.ErrInvalid, "%q", r)
	}
	_, _, err := New(dir, Request{Role: Harness, Label: strings.Repeat("a", MaxLabel+1)})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	_, _, err = New(filepath.Join(dir, "no"), Request{Role: Harness})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, _, err = New(t.TempDir(), Request{Role: Harness})
	require.ErrorIs(t, err, eventlog.ErrNotFound, "a directory that is no store")
}

func TestTheFileIsBounded(t *testing.T) {
	dir := storeDir(t)
	require.NoError(t, change(dir, func(f *file) error {
		for i := range MaxTokens {
			f.Tokens = append(f.Tokens, entry{ID: fmt.Sprint(i), Role: Auditor, SHA256: fmt.Sprintf("%x", hashOf(fmt.Sprint(i)))})
		}
		return nil
	}))
	_, _, err := New(dir, Request{Role: Harness})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
}
