package bundle

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/note"

	"childlog/cmd/childlog/internal/storetest"
	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/snapshot"
)

var ctx = context.Background()

func sid(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("5e551041-0000-4000-8000-%012x", n))
}

var (
	newStore     = storetest.New
	requireSound = storetest.RequireSound
)

// family fills a store with a root, two children of it and a grandchild, each
// with some conversation.
func family(t testing.TB, s *eventlog.Store) (root, child, grandchild, other uuid.UUID) {
	t.Helper()
	root, child, grandchild, other = sid(1), sid(2), sid(3), sid(4)
	setting := &policy.Setting{Mode: policy.WorkspaceWrite}
	_, err := materialize.Root(ctx, s, materialize.RootRequest{ID: root, Sandbox: setting, Workspace: "/work", Label: "root", System: "demo", External: "one"})
	require.NoError(t, err)
	say(t, s, root, "begin", string(bytes.Repeat([]byte("long "), 40_000)))
	delegate(t, s, root, child)
	say(t, s, child, "the child's", "work")
	delegate(t, s, child, grandchild)
	delegate(t, s, root, other)
	say(t, s, grandchild, "deep")
	say(t, s, root, "end")
	return root, child, grandchild, other
}

func delegate(t testing.TB, s *eventlog.Store, parent, id uuid.UUID) {
	t.Helper()
	_, err := materialize.Delegate(ctx, s, parent, snapshot.Options{}, materialize.Request{ID: id, Key: id.String(), Prompt: "do it"})
	require.NoError(t, err)
}

func say(t testing.TB, s *eventlog.Store, id uuid.UUID, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{
			{Type: eventlog.TypeAssistantMessage, Media: eventlog.MediaText, Content: []byte(text)}}})
		require.NoError(t, err)
	}
}

// notary signs checkpoints as a store does.
type notary struct {
	signer   note.Signer
	verifier note.Verifier
	text     string
}

func newNotary(t testing.TB, name string) *notary {
	t.Helper()
	skey, vkey, err := note.GenerateKey(rand.Reader, name)
	require.NoError(t, err)
	n := &notary{text: vkey}
	n.signer, err = note.NewSigner(skey)
	require.NoError(t, err)
	n.verifier, err = note.NewVerifier(vkey)
	require.NoError(t, err)
	return n
}

// checkpoint signs the tree of the first size positions.
func (n *notary) checkpoint(t testing.TB, s *eventlog.Store, size uint64) []byte {
	t.Helper()
	var tree frontier
	require.NoError(t, s.EachRaw(ctx, 0, size, func(uuid.UUID) bool { return false }, func(f *eventlog.RawFrame) error {
		return tree.add(node{0, f.Position, f.Leaf})
	}))
	root := tree.root()
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", s.Identity().Origin(), size, base64.StdEncoding.EncodeToString(root[:]))}, n.signer)
	require.NoError(t, err)
	return signed
}

func export(t testing.TB, s *eventlog.Store, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := Export(ctx, s, &b, o)
	require.NoError(t, err)
	return b.Bytes()
}

func verify(t testing.TB, b []byte, a Anchors) *Report {
	t.Helper()
	r, err := Verify(ctx, bytes.NewReader(b), a)
	require.NoError(t, err)
	return r
}
