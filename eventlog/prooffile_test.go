package eventlog

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// signedStore has frames of one event and of several, a content of each kind,
// and is signed.
func signedStore(t testing.TB) *testStore {
	ts := newStore(t)
	ts.root(sid(1))
	ts.child(sid(1), sid(2), "a")
	ts.say(sid(1), numbers(300)...)
	_, err := ts.Append(ctx, Batch{Session: sid(2), Expect: Any(), Events: []NewEvent{text("first"), {Type: "turn/note"}, text(""), text("last of the batch")}})
	require.NoError(t, err)
	_, err = ts.Checkpoint(ctx)
	require.NoError(t, err)
	return ts
}

// TestProof: every event of the store can be proven, from a file and without the
// store, and the content only where it was put in.
func TestProof(t *testing.T) {
	ts := signedStore(t)
	key := must(ParseVerifierKey(ts.VerifierKey()))
	ts.reopen(Options{ReadOnly: true})
	for _, id := range []int{1, 2} {
		row := must(ts.Row(sid(id)))
		for seq := uint64(1); seq <= row.Head; seq += 1 + row.Head/40 {
			for _, o := range []ProveOptions{{}, {Salt: true}, {Content: true}} {
				p, err := ts.Prove(ctx, sid(id), seq, o)
				require.NoError(t, err)
				file := must(p.Marshal())
				parsed, err := ParseProof(file)
				require.NoError(t, err)
				got := parsed.(*Proof)
				require.Equal(t, p, got)
				ev, err := got.Verify(key)
				require.NoError(t, err)
				want := must(ts.Read(ctx, sid(id), ReadOptions{From: seq, To: seq, Contents: true})).Events[0]
				require.Equal(t, want.Hash, ev.Hash)
				require.Equal(t, want.Facts, ev.Facts)
				require.Equal(t, [3]any{want.Type, want.ID, want.Seq}, [3]any{ev.Type, ev.ID, ev.Seq})
				if !want.HasContent {
					require.ErrorIs(t, got.CheckContent(ev, nil), ErrNotFound)
					continue
				}
				require.Equal(t, o.Content, got.Event.Content != nil)
				if o.Content {
					require.Equal(t, string(want.Content), string(got.Event.Content))
				}
				if o.Content || o.Salt {
					require.NoError(t, got.CheckContent(ev, want.Content))
					require.ErrorIs(t, got.CheckContent(ev, append([]byte("x"), want.Content...)), ErrUnverified)
				} else {
					require.ErrorIs(t, got.CheckContent(ev, want.Content), ErrNotFound)
				}
			}
		}
	}
	_, err := ts.Prove(ctx, sid(1), 9999, ProveOptions{})
	require.ErrorIs(t, err, ErrNotFound)
	_, err = ts.Prove(ctx, sid(8), 1, ProveOptions{})
	require.ErrorIs(t, err, ErrNotFound)
}

// TestProofHoldsNoNeighbour: a proof of one event of a batch has not a byte of
// the others.
func TestProofHoldsNoNeighbour(t *testing.T) {
	ts := signedStore(t)
	row := must(ts.Row(sid(2)))
	p, err := ts.Prove(ctx, sid(2), row.Head-3, ProveOptions{Content: true})
	require.NoError(t, err)
	require.Equal(t, uint32(4), p.Event.Count)
	require.Len(t, p.Event.After, 3)
	require.Equal(t, "first", string(p.Event.Content))
	require.NotContains(t, string(p.Event.Header), "turn/note")
}

// TestForgedProof: whatever is changed in a proof, it does not hold.
func TestForgedProof(t *testing.T) {
	ts, other := signedStore(t), signedStore(t)
	key := must(ParseVerifierKey(ts.VerifierKey()))
	row := must(ts.Row(sid(2)))
	for name, change := range map[string]func(p *Proof){
		"another session":         func(p *Proof) { p.Event.Session = sid(1) },
		"another seq":             func(p *Proof) { p.Event.Seq++ },
		"another first":           func(p *Proof) { p.Event.First-- },
		"another count":           func(p *Proof) { p.Event.Count++ },
		"another count and event": func(p *Proof) { p.Event.Count++; p.Event.After = append(p.Event.After, Hash{}) },
		"another hash before":     func(p *Proof) { p.Event.Before[0]++ },
		"another header":          func(p *Proof) { p.Event.Header[len(p.Event.Header)-1]++ },
		"another type": func(p *Proof) {
			p.Event.Header = bytes.Replace(p.Event.Header, []byte("turn/note"), []byte("turn/vote"), 1)
		},
		"no header":              func(p *Proof) { p.Event.Header = nil },
		"another event behind":   func(p *Proof) { p.Event.After[0][0]++ },
		"another position":       func(p *Proof) { p.Position++ },
		"a position behind":      func(p *Proof) { p.Position = p.Checkpoint.Size },
		"another path":           func(p *Proof) { p.Path[0][0]++ },
		"a shorter path":         func(p *Proof) { p.Path = p.Path[1:] },
		"a longer path":          func(p *Proof) { p.Path = append(p.Path, Hash{}) },
		"another root":           func(p *Proof) { p.Checkpoint.Root[0]++ },
		"the head of another":    func(p *Proof) { p.Checkpoint, _ = other.Signed() },
		"another size":           func(p *Proof) { p.Checkpoint.Size++ },
		"an unsigned checkpoint": func(p *Proof) { p.Checkpoint.Note = []byte(p.Checkpoint.body()) },
		"a checkpoint not its own": func(p *Proof) {
			p.Checkpoint.Note = bytes.Replace(p.Checkpoint.Note, []byte("/1\n"), []byte("/2\n"), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ts.Prove(ctx, sid(2), row.Head-2, ProveOptions{})
			require.NoError(t, err)
			_, err = p.Verify(key)
			require.NoError(t, err)
			change(p)
			_, err = p.Verify(key)
			require.ErrorIs(t, err, ErrUnverified)
		})
	}
	p, err := ts.Prove(ctx, sid(2), row.Head, ProveOptions{Content: true})
	require.NoError(t, err)
	p.Event.Content[0]++
	_, err = p.Verify(key)
	require.ErrorIs(t, err, ErrUnverified)
	_, err = must(ts.Prove(ctx, sid(2), 1, ProveOptions{})).Verify(must(ParseVerifierKey(other.VerifierKey())))
	require.ErrorIs(t, err, ErrUnverified)
}

// TestConsistencyProof: between any two heads of one log, and of no other.
func TestConsistencyProof(t *testing.T) {
	ts := newStore(t)
	key := must(ParseVerifierKey(ts.VerifierKey()))
	signed := []Checkpoint{must(ts.Checkpoint(ctx))}
	ts.root(sid(1))
	for _, n := range []int{1, 2, 252, 1, 300} {
		ts.say(sid(1), numbers(n)...)
		signed = append(signed, must(ts.Checkpoint(ctx)))
	}
	for i, is := range signed {
		for _, was := range signed[:i+1] {
			p, err := ts.ProveConsistency(ctx, was, is)
			require.NoError(t, err)
			parsed, err := ParseProof(p.Marshal())
			require.NoError(t, err)
			require.Equal(t, p, parsed)
			require.NoError(t, parsed.(*ConsistencyProof).Verify(key))
			if was.Size > 0 && was.Size < is.Size {
				p.Path = p.Path[:len(p.Path)-1]
				require.ErrorIs(t, p.Verify(key), ErrUnverified)
			}
		}
	}
	_, err := ts.ProveConsistency(ctx, signed[3], signed[2])
	require.ErrorIs(t, err, ErrInvalid)
	other := signedStore(t)
	theirs := must(other.Checkpoint(ctx))
	_, err = ts.ProveConsistency(ctx, theirs, signed[5])
	require.ErrorIs(t, err, ErrRollback)
	p := &ConsistencyProof{Old: theirs, New: signed[5]}
	require.ErrorIs(t, p.Verify(key), ErrUnverified)
	p = &ConsistencyProof{Old: signed[4], New: signed[5], Path: []Hash{{}}}
	require.ErrorIs(t, p.Verify(key), ErrUnverified)
}

// TestCheckpointFormat: what is refused, and the strings that have to be read.
func TestCheckpointFormat(t *testing.T) {
	ts := signedStore(t)
	c, _ := ts.Signed()
	text := string(c.Note)
	parsed, err := ParseCheckpoint([]byte(text))
	require.NoError(t, err)
	require.Equal(t, c, parsed)
	store, incarnation, ok := parsed.Of()
	require.True(t, ok)
	require.Equal(t, [2]any{ts.Identity().Store, uint64(1)}, [2]any{store, incarnation})
	lines := strings.SplitN(text, "\n", 4)
	key := must(ParseVerifierKey(ts.VerifierKey()))
	for name, change := range map[string]func([]string){
		"size with a zero":   func(l []string) { l[1] = "0" + l[1] },
		"negative size":      func(l []string) { l[1] = "-1" },
		"size beyond 63 bit": func(l []string) { l[1] = "9223372036854775808" },
		"no size":            func(l []string) { l[1] = "" },
		"short root":         func(l []string) { l[2] = "AAAA" },
		"no root":            func(l []string) { l[2] = "!" },
		"no origin":          func(l []string) { l[0] = "" },
		"no signature":       func(l []string) { l[3] = "" },
	} {
		l := append([]string(nil), lines...)
		change(l)
		_, err := ParseCheckpoint([]byte(strings.Join(l, "\n")))
		require.ErrorIs(t, err, ErrInvalid, name)
	}
	extended := Checkpoint{Note: []byte(strings.Join([]string{lines[0], lines[1], lines[2], "an extension"}, "\n") + "\n" + lines[3])}
	read, err := ParseCheckpoint(extended.Note)
	require.NoError(t, err, "extension lines are allowed")
	require.ErrorIs(t, read.Verify(key), ErrUnverified, "and signed")
	for _, bad := range []string{"", "childlog/x/1", "childlog/" + store.String() + "/01", "go.sum database tree", "childlog/" + strings.ToUpper(store.String()) + "/1"} {
		_, _, ok := (&Checkpoint{Origin: bad}).Of()
		require.False(t, ok, bad)
	}
	_, err = ParseCheckpoint(make([]byte, maxCheckpoint+1))
	require.ErrorIs(t, err, ErrInvalid)
	for _, bad := range []string{"", "a 1", "5e551041-0000-4000-8000-000000000001 0 " + strings.Repeat("0", 64), "5e551041-0000-4000-8000-000000000001 1 00"} {
		_, err := ParseAnchor(bad)
		require.ErrorIs(t, err, ErrInvalid, bad)
	}
	a := Anchor{sid(1), 7, Hash{1, 2}}
	require.Equal(t, a, must(ParseAnchor(a.String())))
}

// FuzzCheckpoint: any text is a checkpoint or an error, and what was read is
// what was signed.
func FuzzCheckpoint(f *testing.F) {
	ts := signedStore(f)
	c, _ := ts.Signed()
	f.Add(c.Note)
	f.Add([]byte("childlog/x/1\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— x 27QLmA==\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCheckpoint(b)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.True(t, bytes.HasPrefix(b, []byte(c.body())))
	})
}

// FuzzProofFile: any bytes are a proof or an error; a proof that was read is
// written as it was, and verifying it ends.
func FuzzProofFile(f *testing.F) {
	ts := signedStore(f)
	key := must(ParseVerifierKey(ts.VerifierKey()))
	for _, seq := range []uint64{1, 4, 6} {
		p, err := ts.Prove(ctx, sid(2), seq, ProveOptions{Content: true})
		require.NoError(f, err)
		f.Add(must(p.Marshal()))
	}
	c, _ := ts.Signed()
	f.Add((&ConsistencyProof{Old: c, New: c}).Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		parsed, err := ParseProof(b)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		switch p := parsed.(type) {
		case *Proof:
			again, err := ParseProof(must(p.Marshal()))
			require.NoError(t, err)
			require.Equal(t, p, again)
			_, _ = p.Verify(key)
		case *ConsistencyProof:
			again, err := ParseProof(p.Marshal())
			require.NoError(t, err)
			require.Equal(t, p, again)
			_ = p.Verify(key)
		}
	})
}
