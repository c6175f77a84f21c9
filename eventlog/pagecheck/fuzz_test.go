package pagecheck_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

// FuzzInspect changes a real file. With seal set the checksum of the newer meta
// page is renewed, so that its fields can be anything too.
func FuzzInspect(f *testing.F) {
	for _, s := range []shape{
		{pageSize: 1024, journal: 45, contents: 5, valueMax: 3000, nested: true},
		{pageSize: 1024, journal: 20, contents: 3, valueMax: 2000, noSync: true},
		{pageSize: 1024},
	} {
		m := newImage(f, s)
		data := m.data[:int(m.hwm())*m.pageSize]
		f.Add(data, false)
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal && len(data) >= 2048 {
			data = bytes.Clone(data)
			image{data, 1024}.seal()
		}
		size := int64(len(data))
		first, err := pagecheck.Inspect(context.Background(), bytes.NewReader(data), size)
		require.NoError(t, err)
		full, err := pagecheck.InspectAll(context.Background(), bytes.NewReader(data), size)
		require.NoError(t, err)
		if full.OK() {
			require.Empty(t, first.Problems, "the full check finds what the short one finds")
		}
		require.Equal(t, full.Txid, first.Txid)
		require.Equal(t, full.Metas, first.Metas)
		names := [][]byte{[]byte("journal")}
		for _, b := range full.Buckets {
			names = append(names, b.Name)
		}
		for _, name := range names {
			total := 0
			problems, err := pagecheck.Walk(context.Background(), bytes.NewReader(data), size, name,
				func(page uint64, k, v []byte) error {
					total += len(k) + len(v)
					return nil
				})
			require.LessOrEqual(t, total, len(data), "no byte is handed out twice")
			if full.OK() {
				require.Empty(t, problems)
				require.True(t, err == nil || errors.Is(err, pagecheck.ErrNoBucket), "%v", err)
			}
		}
	})
}
