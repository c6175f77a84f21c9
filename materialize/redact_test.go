package materialize_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
)

// secretTexts are the texts that hold the secret, as whoever tries candidates
// would write them: he knows everything but four digits.
func secretTexts(pin string) map[string]string {
	return map[string]string{
		"alone":    pin,
		"message":  "the pin is " + pin,
		"argument": `{"command":"unlock ` + pin + `"}`,
		"label":    "pin " + pin,
		"created":  `{"label":"pin ` + pin + `","cwd":"` + workspace + `"}`,
		"prompt":   "unlock with " + pin,
		"question": "may it unlock " + pin + "?",
	}
}

// dictionary tries candidates against everything that a store still says: each
// hash in a header or in facts, each id, and each salt that can still be read.
// It returns what it found.
func (f *fixture) dictionary(pins []string) (found []string) {
	hashes, salts := map[string]bool{}, [][]byte{nil, make([]byte, 16), make([]byte, 32)}
	hexes := regexp.MustCompile(`"salt":"([0-9a-f]+)"`)
	var gather func(v any)
	gather = func(v any) {
		switch v := v.(type) {
		case []byte:
			hashes[string(v)] = true
		case map[string]any:
			for _, e := range v {
				gather(e)
			}
		case []any:
			for _, e := range v {
				gather(e)
			}
		}
	}
	require.NoError(f.t, f.EachRow(f.ctx, func(row *eventlog.Row) (bool, error) {
		gather(row.Hash[:])
		for _, ev := range f.log(row.Session) {
			gather(ev.Commitment[:])
			gather(ev.ID[:])
			m, err := ev.Facts.Map()
			require.NoError(f.t, err)
			gather(m)
			for _, s := range hexes.FindAllSubmatch(ev.Content, -1) {
				salt, err := hex.DecodeString(string(s[1]))
				require.NoError(f.t, err)
				salts = append(salts, salt)
			}
		}
		return true, nil
	}))
	for _, pin := range pins {
		for name, text := range secretTexts(pin) {
			b := []byte(text)
			tries := [][32]byte{sha256.Sum256(b), eventlog.Digest(b), eventlog.ExternalHash("codex", text), eventlog.KeyHash(uuid.Nil, text)}
			for _, salt := range salts {
				tries = append(tries, eventlog.Digest(salt, b), sha256.Sum256(append(bytes.Clone(salt), b...)))
				if len(salt) == 16 {
					tries = append(tries, eventlog.CommitArgs(eventlog.Salt(salt), b), contentCommitment(salt, b))
				}
			}
			for _, h := range tries {
				if hashes[string(h[:])] || hashes[string(h[:16])] {
					found = append(found, name+" "+pin)
					break
				}
			}
		}
	}
	return found
}

// contentCommitment is FORMATS' commitment of a content: SHA-256 of the tag, the
// salt, the length and the bytes.
func contentCommitment(salt, b []byte) [32]byte {
	in := append([]byte("childlog/conte/1"), salt...)
	return sha256.Sum256(append(append(in, 0, 0, 0, 0, 0, 0, byte(len(b)>>8), byte(len(b))), b...))
}

// holders lists the files of a directory that hold one of the texts.
func holders(t *testing.T, dir, pin string) (out []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		for name, text := range secretTexts(pin) {
			if name != "alone" && bytes.Contains(b, []byte(text)) {
				out = append(out, e.Name()+" "+name)
			}
		}
	}
	return out
}

// TestCase62_ADictionaryFindsNothing: a four-digit secret in a message, in the
// arguments of a call and of a question, in a label and in a prompt. Before it
// is redacted the same search finds it; afterwards no candidate fits anything:
// not in commitments, digests, ids, facts, rows, seed copies, and after a
// compaction not in any file nor in a backup.
func TestCase62_ADictionaryFindsNothing(t *testing.T) {
	const pin = "7305"
	f := newFixture(t)
	texts := secretTexts(pin)
	made, err := materialize.Root(f.ctx, f.Store, materialize.RootRequest{Workspace: workspace, Label: texts["label"], Sandbox: &policy.Setting{Mode: policy.WorkspaceWrite}})
	require.NoError(t, err)
	root := made.ID
	said := f.say(root, eventlog.NewEvent{Type: eventlog.TypeUserMessage, Media: eventlog.MediaText, Content: []byte(texts["message"])})
	call := policy.NewCall("c1", "exec_shell", map[string]any{"command": "unlock " + pin})
	recorded, err := replay.NewAuthorizer(f.Store, root).Record(f.ctx, replay.CallRequest{Call: call, Args: []byte(texts["argument"])})
	require.NoError(t, err)
	asked, err := replay.Ask(f.ctx, f.Store, replay.AskRequest{Session: root, Call: "c1", Tool: "exec_shell", Args: []byte(texts["argument"]), Question: texts["question"]})
	require.NoError(t, err)
	head := f.row(root).Head
	child := f.made(root, materialize.Request{Label: texts["label"], Prompt: texts["prompt"], ToolCall: "c1", Fork: head})
	grandchild := f.made(child.ID, materialize.Request{Label: "plain", Fork: head - 1})

	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf("%04d", i))
	}
	pins := all
	if testing.Short() {
		pins = all[7000:7600]
	}
	require.Contains(t, f.dictionary([]string{pin}), "argument "+pin, "the salt of the decision gives it away")
	require.Contains(t, f.dictionary([]string{pin}), "prompt "+pin, "the salt of the receipt does too")

	out, err := f.Redact(f.ctx, eventlog.RedactRequest{Order: eventlog.Order{Code: "leak"}, Session: root, Seqs: []uint64{1, said.LastSeq, recorded.CallSeq}})
	require.NoError(t, err)
	var copies int
	for _, l := range out.Sessions {
		for _, e := range l.Erased {
			if e.Why == eventlog.WhyCopy {
				copies++
			}
		}
	}
	require.Equal(t, 4, copies, "the message and the call, in both forks: %+v", out.Sessions)
	require.Contains(t, fmt.Sprint(out.Also), child.ID.String(), "the child that the call made is named")
	_ = asked
	_, err = f.Redact(f.ctx, eventlog.RedactRequest{Order: eventlog.Order{Code: "leak"}, Session: child.ID, Seqs: []uint64{1}})
	require.NoError(t, err)

	require.Empty(t, f.dictionary(pins))
	require.NoError(t, f.EachRow(f.ctx, func(row *eventlog.Row) (bool, error) {
		require.NotContains(t, strings.Join([]string{row.Label, row.Cwd, row.ExternalID, fmt.Sprintf("%+v", *row)}, " "), texts["label"])
		return true, nil
	}))
	for _, id := range []uuid.UUID{root, child.ID, grandchild.ID} {
		for _, ev := range f.log(id) {
			require.NotContains(t, string(ev.Content), pin, "%s seq %d", id, ev.Seq)
		}
	}
	require.NoError(t, f.Store.Close())
	require.NotEmpty(t, holders(t, f.dir, pin), "in free pages, until")
	_, err = eventlog.Compact(f.ctx, f.dir, eventlog.CompactOptions{})
	require.NoError(t, err)
	require.Empty(t, holders(t, f.dir, pin))
	f.open(eventlog.Options{})
	backup := filepath.Join(t.TempDir(), "backup")
	_, err = f.Backup(f.ctx, backup, eventlog.BackupOptions{})
	require.NoError(t, err)
	require.Empty(t, holders(t, backup, pin))
	require.Empty(t, f.dictionary(pins), "nor in a rebuilt index")

	resumed, err := replay.Resume(f.ctx, f.Store, replay.Request{Session: child.ID, By: replay.AsParent(root)})
	require.NoError(t, err, "policy is facts")
	require.NotEmpty(t, resumed.Redacted)
	require.Equal(t, child.Policy.Sandbox, resumed.Policy.Sandbox)
}

// TestAKeyOfWhatWasErased: a retry under the key of a child whose request was
// redacted, or that was purged, is told so and makes no other child.
func TestAKeyOfWhatWasErased(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	r := materialize.Request{Key: "k", Label: "l"}
	child := f.made(root, r)
	order := eventlog.Order{Code: "x"}
	_, err := f.Redact(f.ctx, eventlog.RedactRequest{Order: order, Session: child.ID, Seqs: []uint64{1}})
	require.NoError(t, err)
	_, err = f.delegate(root, r)
	require.ErrorIs(t, err, eventlog.ErrConflict)
	require.ErrorContains(t, err, "was redacted at seq")
	_, err = f.Store.Purge(f.ctx, eventlog.PurgeRequest{Order: order, Session: child.ID})
	require.NoError(t, err)
	n := f.sessions()
	for range 2 {
		_, err = f.delegate(root, r)
		require.ErrorIs(t, err, eventlog.ErrConflict)
		require.ErrorIs(t, err, eventlog.ErrPurged)
		f.reopen(eventlog.Options{})
	}
	_, err = f.delegate(root, materialize.Request{ID: child.ID})
	require.ErrorIs(t, err, eventlog.ErrExists)
	require.Equal(t, n, f.sessions())
}

// TestForkOfARedactedConversation: the seed copies what is left, and says where
// each copy is from.
func TestForkOfARedactedConversation(t *testing.T) {
	f := newFixture(t)
	root := f.rootWith(policy.WorkspaceWrite)
	said := f.say(root, eventlog.NewEvent{Type: eventlog.TypeUserMessage, Media: eventlog.MediaText, Content: []byte("one")},
		eventlog.NewEvent{Type: eventlog.TypeUserMessage, Media: eventlog.MediaText, Content: []byte("two")})
	_, err := f.Redact(f.ctx, eventlog.RedactRequest{Order: eventlog.Order{Code: "x"}, Session: root, Seqs: []uint64{said.FirstSeq}})
	require.NoError(t, err)
	child := f.made(root, materialize.Request{Fork: said.LastSeq})
	log := f.log(child.ID)
	require.Equal(t, &eventlog.Ref{Session: root, Seq: said.FirstSeq}, log[1].Inherited)
	require.False(t, log[1].HasContent)
	require.Equal(t, "two", string(log[2].Content))
}

// TestAPurgedChildUsedItsGrant: what it relied on stays used up, also below
// another that was purged, and after the index was built anew.
func TestAPurgedChildUsedItsGrant(t *testing.T) {
	f := newFixture(t)
	twice := f.coordinator(policy.ExplicitGrant{ID: "worker", Uses: 2})
	middle := f.made(twice, materialize.Request{Want: policy.Request{Wish: policy.Wish{Permissions: &policy.Permissions{}}, Delegable: &policy.Wish{WriteScope: &[]string{"src"}}}})
	below := f.made(middle.ID, editSrc)
	for _, id := range []uuid.UUID{below.ID, middle.ID} {
		_, err := f.Store.Purge(f.ctx, eventlog.PurgeRequest{Order: eventlog.Order{Code: "x"}, Session: id})
		require.NoError(t, err)
		_, err = f.delegate(twice, editSrc)
		var re *policy.RefusedError
		require.ErrorAs(t, err, &re)
		require.Equal(t, policy.RuleGrantSpent, re.Rule)
	}
	require.NoError(t, f.Store.Close())
	_, err := eventlog.Reindex(f.ctx, f.dir, eventlog.Options{})
	require.NoError(t, err)
	f.open(eventlog.Options{})
	_, err = f.delegate(twice, editSrc)
	require.ErrorIs(t, err, eventlog.ErrWidening)
}
