package eventlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The seeds are the golden files, so that `go test` alone already runs them.

func goldenSeeds(f *testing.F, pattern string) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "format", pattern))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(undump(&testing.T{}, string(raw)))
	}
}

// FuzzFrame fuzzes frames whose checksum is right: it is not the checksum
// that keeps a reader safe from what somebody wrote on purpose.
func FuzzFrame(f *testing.F) {
	goldenSeeds(f, "frame-*")
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, raw := range [][]byte{raw, reseal(raw)} {
			guessFrame(raw)
			fr, err := decodeFrame(raw)
			if err != nil {
				continue
			}
			again := fr
			require.Equal(t, raw, appendFrame(nil, &again))
			events, err := decodeAll(raw)
			if err != nil {
				continue
			}
			require.Len(t, events, int(fr.count))
			var headers []byte
			for i := range events {
				require.Equal(t, fr.first+uint64(i), events[i].Seq)
				header := encodeEvent(&events[i])
				headers = append(appendUvarint(headers, uint64(len(header))), header...)
			}
			require.Equal(t, fr.headers, headers)
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(appendHeader(nil, &pending{typ: "tool/call", inherited: &Ref{Seq: 7}, policy: true, media: MediaText}, 1, 2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ev Event
		if decodeHeader(raw, &ev) == nil {
			require.Equal(t, raw, encodeEvent(&ev))
		}
	})
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(rootEvents(sid(1), "x")[0].Facts))
	f.Add([]byte(childBatches(&Row{Session: sid(1), Root: sid(1), MaxDepth: 3}, sid(2), "k")[0].Events[1].Facts))
	f.Fuzz(func(t *testing.T, raw []byte) {
		facts := Facts(raw)
		for _, key := range []string{"", "a", "kind"} {
			facts.Str(key)
			facts.Uint(key)
			facts.UUID(key)
		}
		_ = checkFacts("tool/call", facts)
		ev := &Event{Facts: facts}
		for typ := range coreTypes() {
			ev.Type, ev.Version = typ, coreTypes()[typ].version
			new(Row).apply(ev, Hash{})
			requireScanAgrees(t, typ, facts)
		}
		requireScanAgrees(t, "x/y", facts)
		_, err1 := ParseGranted(ev)
		_, err2 := ParseNarrowed(ev)
		m, err := facts.Map()
		if err != nil {
			require.Error(t, err1)
			require.Error(t, err2)
			return
		}
		again, err := MakeFacts(m)
		if len(raw) > MaxFacts {
			require.ErrorIs(t, err, ErrTooLarge)
			return
		}
		require.NoError(t, err)
		if len(raw) == 0 {
			raw = emptyFacts
		}
		require.True(t, bytes.Equal(raw, again), "%x\n%x", raw, again)
	})
}

// FuzzJSON: whatever is accepted as facts comes back as the same facts.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"é"}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `[[[]]]`, `{"a":1e3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkErr := CheckJSON(raw)
		facts, err := FactsFromJSON(raw)
		if checkErr != nil {
			require.True(t, isRefusal(checkErr), "%v", checkErr)
			require.Error(t, err, "facts are stricter than content")
		}
		if err != nil {
			require.True(t, isRefusal(err), "%v", err)
			return
		}
		require.NoError(t, facts.Check())
		out, err := facts.JSON()
		require.NoError(t, err)
		again, err := FactsFromJSON(out)
		require.NoError(t, err)
		require.Equal(t, facts, again)
	})
}

func FuzzChunk(f *testing.F) {
	goldenSeeds(f, "chunk-*")
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, want := range []int{0, 12, 4000, chunkSize} {
			out, _, err := decodeChunk(nil, raw, true, want)
			if err == nil {
				require.Len(t, out, want)
			}
		}
	})
}

func FuzzPositions(f *testing.F) {
	f.Add(encodePositions([]byte("key"), []framePos{{1, 1}, {5, 2}})[:4])
	f.Fuzz(func(t *testing.T, raw []byte) {
		sealed := seal([]byte("key"), bytes.Clone(raw))
		list, err := decodePositions([]byte("key"), sealed, len(raw))
		if err == nil {
			require.Equal(t, sealed, encodePositions([]byte("key"), list))
		}
	})
}
