package eventlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/policy"
)

// The golden files fix the format: a change here makes old stores unreadable
// and needs a new format version, not an update of the files.

var goldenTime = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC).UnixNano()

func goldenSalt() (s Salt) {
	for i := range s {
		s[i] = byte(0xa0 + i)
	}
	return s
}

func goldenFacts(t *testing.T, m map[string]any) Facts {
	facts, err := MakeFacts(m)
	require.NoError(t, err)
	return facts
}

// goldenFrame encodes events as the frame of seqs from first on, in a unit of
// which left frames are still to come.
func goldenFrame(continues bool, left, first, lastPolicy uint64, events ...*pending) []byte {
	f := frame{continues: continues, framesLeft: left, session: sid(1), first: first, count: uint64(len(events)), prev: Genesis(sid(1))}
	for i, p := range events {
		header := appendHeader(nil, p, first+uint64(i), lastPolicy)
		f.headers = append(appendUvarint(f.headers, uint64(len(header))), header...)
		if p.policy {
			lastPolicy = first + uint64(i)
		}
	}
	f.lastPolicy = lastPolicy
	return appendFrame(nil, &f)
}

func TestGoldenFrames(t *testing.T) {
	hello := []byte("hello, world")
	big := make([]byte, 300)
	root := Created{Kind: KindRoot, Root: sid(1), MaxDepth: 3, Mode: ModeContinuable, WorkspaceRoot: "/w", PathStyle: "posix",
		Defaults: policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Ask}}
	for _, g := range []struct {
		name, about string
		raw         []byte
	}{
		{"frame-created", "session/created: policy-bearing, the first of its session, with a content",
			goldenFrame(false, 0, 1, 0, &pending{id: eid(1), typ: TypeSessionCreated, version: 1, source: SourceOperator, policy: true, time: goldenTime,
				facts: root.Facts(), media: MediaJSON, content: []byte(`{"label":"x"}`), commitment: commit(goldenSalt(), []byte(`{"label":"x"}`))})},
		{"frame-batch", "a batch of two events: no facts and an octets content over 127 bytes; no content and facts of every kind",
			goldenFrame(false, 0, 128, 3,
				&pending{id: eid(2), typ: "user/message", version: 1, source: SourceUser, time: goldenTime, media: MediaOctets, content: big, commitment: commit(goldenSalt(), big)},
				&pending{id: eid(3), typ: "plugin/note", ignorable: true, source: SourceRuntime, time: goldenTime, facts: goldenFacts(t, map[string]any{
					"bytes": sid(2), "false": false, "int": 7, "ints": []any{-1, -32, 128, 256, 65536, int64(1) << 53}, "map": map[string]any{"b": 1, "a": []any{}},
					"null": nil, "string": "code", "true": true})})},
		{"frame-unit", "the middle frame of an atomic unit, a seed copy inside, before 1970",
			goldenFrame(true, 300, 2, 1, &pending{id: eid(4), typ: "assistant/message", version: 1, source: SourceDelegation, inherited: &Ref{Session: sid(9), Seq: 4711}, time: -1,
				media: MediaText, content: hello, commitment: commit(goldenSalt(), hello)})},
		{"frame-policy", "policy/narrowed, linked to the policy event before it",
			goldenFrame(false, 0, 90, 3, &pending{id: eid(5), typ: TypePolicyNarrowed, version: 1, source: SourceOperator, policy: true, time: goldenTime,
				facts: NarrowedFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), "operator")})},
	} {
		t.Run(g.name, func(t *testing.T) {
			text := "# " + g.about + "\n" + dumpFrame(t, g.raw)
			require.Equal(t, g.raw, undump(t, text), "a dump shows every byte")
			golden(t, "format/"+g.name+".golden", text)

			r, err := newFrameReader(g.raw)
			require.NoError(t, err)
			for range r.count + 1 {
				_, err := r.next(new(Event))
				require.NoError(t, err, "what was written once must decode")
			}
		})
	}
}

func TestGoldenChunks(t *testing.T) {
	content := []byte("hello, world")
	for name, chunk := range map[string]storedChunk{
		"chunk-plain": encodeContent(content, goldenSalt())[0],
		"chunk-empty": encodeContent(nil, goldenSalt())[0],
	} {
		golden(t, "format/"+name+".golden", dumpChunk(t, chunk, true))
	}
	tail := encodeContent(make([]byte, chunkSize+5), goldenSalt())[1]
	golden(t, "format/chunk-second.golden", "# chunk 1: no salt\n"+dumpChunk(t, tail, false))
	require.Equal(t, "0000000000000007000000030000000b", hex.EncodeToString(contentKey(7, 3, 11)))
	require.Equal(t, "000000000000002a", hex.EncodeToString(positionKey(42)))
}

// TestCompressedChunkDecodes: what zstd writes may change with its version,
// so only that old bytes decode is fixed.
func TestCompressedChunkDecodes(t *testing.T) {
	content := []byte(strings.Repeat("the same line again\n", 200))
	path := filepath.Join("..", "testdata", "format", "chunk-zstd.golden")
	if *update {
		chunk := encodeContent(content, goldenSalt())[0]
		require.NoError(t, os.WriteFile(path, []byte(dumpChunk(t, chunk, true)), 0o644))
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	stored := undump(t, string(raw))
	require.Equal(t, byte(flagZstd), stored[0])
	require.Less(t, len(stored), 200)
	got, salt, err := decodeChunk(nil, stored, true, len(content))
	require.NoError(t, err)
	require.Equal(t, content, got)
	require.Equal(t, goldenSalt(), salt)
}

// TestGoldenHashes states each hash as the SHA-256 of bytes that are put
// together here from the comments in hash.go, not by its code.
func TestGoldenHashes(t *testing.T) {
	header := appendHeader(nil, &pending{id: eid(1), typ: "user/message", version: 1, source: SourceUser, time: goldenTime}, 5, 0)
	u64 := func(n byte) string { return strings.Repeat("\x00", 7) + string(n) }
	s1, salt := sid(1), goldenSalt()
	inner := sha256.Sum256([]byte("childlog/headr/1" + string(header)))
	genesis := sha256.Sum256([]byte("childlog/genesis" + string(s1[:])))
	chained, _ := chainNext(Genesis(s1), header, nil)

	var out strings.Builder
	for _, v := range []struct {
		name, of string
		got      Hash
	}{
		{"h0 of a session", "childlog/genesis" + string(s1[:]), Genesis(s1)},
		{"h1: h0, header", "childlog/chain/1" + string(genesis[:]) + string(inner[:]), chained},
		{"commitment to \"hi\"", "childlog/conte/1" + string(salt[:]) + u64(2) + "hi", commit(salt, []byte("hi"))},
		{"commitment to an empty content", "childlog/conte/1" + string(salt[:]) + u64(0), commit(salt, nil)},
		{"leaf of seqs 5 to 7", "\x00\x01" + string(s1[:]) + u64(5) + "\x00\x00\x00\x03" + string(genesis[:]), leafHash(leafNative, s1, 5, 3, Genesis(s1))},
		{"leaf of a frame from another store", "\x00\x03" + string(s1[:]) + u64(5) + "\x00\x00\x00\x03" + string(genesis[:]), leafHash(leafImported, s1, 5, 3, Genesis(s1))},
		{"key \"k\" of a parent", "childlog/dkey/01" + string(s1[:]) + "k", KeyHash(s1, "k")},
		{"external codex:abc", "childlog/extid/1" + "\x05codexabc", ExternalHash("codex", "abc")},
		{"digest of two parts", "childlog/digst/1" + u64(1) + "a" + u64(0), Digest([]byte("a"), nil)},
	} {
		require.Equal(t, Hash(sha256.Sum256([]byte(v.of))), v.got, v.name)
		fmt.Fprintf(&out, "%s\n  sha256(%x)\n  %x\n", v.name, v.of, v.got[:])
	}
	golden(t, "format/hashes.golden", out.String())
	for _, tag := range []string{tagGenesis, tagChain, tagHeader, tagContent, tagKey, tagExtern, tagDigest, tagArgs, tagCode, tagBatch} {
		require.Len(t, tag, 16, "no tagged input is a prefix of another's only if all tags are of one length")
	}
}

// TestNumbersAreNeverReused: the numbers of sources and media are on disk.
func TestNumbersAreNeverReused(t *testing.T) {
	var out strings.Builder
	for i := range 8 {
		fmt.Fprintf(&out, "source %d %s\nmedia %d %s\n", i, Source(i), i, Media(i))
	}
	golden(t, "format/numbers.golden", out.String())
}
