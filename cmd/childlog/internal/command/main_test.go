package command

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"childlog/eventlog"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"childlog": func() { os.Exit(mainOrHeld()) }})
}

// TestScripts runs testdata/script. Beside testscript's own commands there are
//
//	exits CODE CMD...       run it: the exit code must be CODE
//	json [N] PATH WANT      in line N (1) of stdout the value at PATH is WANT;
//	                        PATH is a.b.0.c, WANT is JSON, or a bare string
//	keys [N] PATH KEYS      the object at PATH has exactly these keys, in order
//	snap, unchanged         store.db is byte for byte what it was at snap
//	hold, release           another process (this one) holds the store for writing
//	fill FILE...            put the values of $VARIABLES into files
//	served                  wait until a childlog that serves the store can be reached
//	damage OLD NEW         replace bytes OLD by NEW, of the same length, in store.db
//
// Scripts begin in an empty directory with CHILDLOG_STORE=$WORK/store and the
// ids $R, $C, $G and $N of which nothing exists yet.
func TestScripts(t *testing.T) {
	runScripts(t, testscript.Params{Dir: "testdata/script"}, nil)
}

func runScripts(t *testing.T, p testscript.Params, vars map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir:                p.Dir,
		Files:              p.Files,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("CHILDLOG_STORE", filepath.Join(e.WorkDir, "store"))
			for i, name := range []string{"R", "C", "G", "N"} {
				e.Setenv(name, fmt.Sprintf("%08d-0000-4000-8000-000000000000", 11111111*(i+1)))
			}
			for name, value := range vars {
				e.Setenv(name, value)
			}
			e.Values[heldKey{}] = new(*eventlog.Store)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": cmdExits, "json": cmdJSON, "keys": cmdKeys, "snap": cmdSnap, "unchanged": cmdUnchanged, "hold": cmdHold, "release": cmdRelease,
			"damage": cmdDamage, "served": cmdServed, "keep": cmdKeep, "fill": cmdFill,
		},
	})
}

func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
		code = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%s: exit code %d, want %s\n%s", strings.Join(args[1:], " "), code, args[0], ts.ReadFile("stderr"))
	}
}

// find returns the value at a path in a line of stdout.
func find(ts *testscript.TestScript, args []string) (jsontext.Value, []string) {
	n := 1
	if i, err := strconv.Atoi(args[0]); err == nil {
		n, args = i, args[1:]
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	if n > len(lines) {
		ts.Fatalf("stdout has %d lines, want %d", len(lines), n)
	}
	v := jsontext.Value(lines[n-1])
	for part := range strings.SplitSeq(strings.Trim(args[0], "."), ".") {
		if part == "" {
			continue
		}
		if i, err := strconv.Atoi(part); err == nil {
			var list []jsontext.Value
			ts.Check(json.Unmarshal(v, &list))
			if i >= len(list) {
				ts.Fatalf("%s: %d elements in %s", args[0], len(list), v)
			}
			v = list[i]
			continue
		}
		var m map[string]jsontext.Value
		ts.Check(json.Unmarshal(v, &m))
		next, ok := m[part]
		if !ok {
			ts.Fatalf("%s: no %s in %s", args[0], part, v)
		}
		v = next
	}
	return v, args[1:]
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	v, rest := find(ts, args)
	want := rest[0]
	got := string(v)
	if v.Kind() == '"' && !strings.HasPrefix(want, `"`) {
		ts.Check(json.Unmarshal(v, &got))
	}
	if (got == want) == neg {
		ts.Fatalf("%s: got %s, want %s (negated: %t)", args[0], got, want, neg)
	}
}

func cmdKeys(ts *testscript.TestScript, _ bool, args []string) {
	v, rest := find(ts, args)
	var got []string
	dec := jsontext.NewDecoder(strings.NewReader(string(v)))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		var key jsontext.Token
		if key, err = dec.ReadToken(); err == nil {
			got = append(got, key.String())
			err = dec.SkipValue()
		}
	}
	ts.Check(err)
	if !slices.Equal(got, rest) {
		ts.Fatalf("keys: got  %s\n      want %s", strings.Join(got, " "), strings.Join(rest, " "))
	}
}

// cmdKeep sets a variable to a string of the last answer, and writes it to a
// file of that name: what a person copies out of it.
func cmdKeep(ts *testscript.TestScript, _ bool, args []string) {
	v, rest := find(ts, args)
	var got string
	ts.Check(json.Unmarshal(v, &got))
	ts.Setenv(rest[0], got)
	ts.Check(os.WriteFile(ts.MkAbs(rest[0]), []byte(got), 0o600))
}

// cmdFill puts variables into files, such as $WORK.
func cmdFill(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(os.Expand(ts.ReadFile(name), ts.Getenv)), 0o600))
	}
}

func storeDigest(ts *testscript.TestScript) string {
	b, err := os.ReadFile(filepath.Join(ts.Getenv("CHILDLOG_STORE"), "store.db"))
	ts.Check(err)
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

func cmdSnap(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("SNAP", storeDigest(ts)) }

func cmdUnchanged(ts *testscript.TestScript, neg bool, _ []string) {
	if (storeDigest(ts) == ts.Getenv("SNAP")) == neg {
		ts.Fatalf("store.db changed: %t, want %t", !neg, neg)
	}
}

// heldKey finds the store that a script holds. It is the script's own value:
// scripts run at the same time.
type heldKey struct{}

func held(ts *testscript.TestScript) **eventlog.Store {
	return ts.Value(heldKey{}).(**eventlog.Store)
}

func cmdHold(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := eventlog.Open(context.Background(), ts.Getenv("CHILDLOG_STORE"), eventlog.Options{Command: "the holder"})
	ts.Check(err)
	*held(ts) = s
	ts.Defer(func() {
		if s := *held(ts); s != nil {
			s.Close()
		}
	})
}

func cmdRelease(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check((*held(ts)).Close())
	*held(ts) = nil
}

func cmdDamage(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.Getenv("CHILDLOG_STORE"), "store.db")
	b, err := os.ReadFile(path)
	ts.Check(err)
	if n := strings.Count(string(b), args[0]); n == 0 || len(args[0]) != len(args[1]) {
		ts.Fatalf("damage: %q is there %d times", args[0], n)
	}
	ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(string(b), args[0], args[1])), 0o600))
}
