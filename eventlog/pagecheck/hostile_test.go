package pagecheck_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/eventlog/pagecheck"
)

// craft makes a file of the given number of pages with valid metas and nothing
// else.
func craft(pageSize int, pages, root uint64) image {
	m := image{make([]byte, int(pages)*pageSize), pageSize}
	for i := range uint64(2) {
		p := m.page(i)
		binary.LittleEndian.PutUint64(p, i)
		binary.LittleEndian.PutUint16(p[8:], 0x04)
		b := p[16:]
		binary.LittleEndian.PutUint32(b[0:], 0xED0CDAED)
		binary.LittleEndian.PutUint32(b[4:], 2)
		binary.LittleEndian.PutUint32(b[8:], uint32(pageSize))
		binary.LittleEndian.PutUint64(b[16:], root)
		binary.LittleEndian.PutUint64(b[32:], math.MaxUint64)
		binary.LittleEndian.PutUint64(b[40:], pages)
		binary.LittleEndian.PutUint64(b[48:], i)
		m.sealPage(i)
	}
	return m
}

// putBranch writes a branch with one-byte keys from 1 on.
func putBranch(m image, id uint64, children ...uint64) {
	p := m.page(id)
	binary.LittleEndian.PutUint64(p, id)
	binary.LittleEndian.PutUint16(p[8:], 0x01)
	m.setCount(id, uint16(len(children)))
	for i, c := range children {
		e := p[16+16*i:]
		binary.LittleEndian.PutUint32(e[0:], uint32(16*(len(children)-i)+i))
		binary.LittleEndian.PutUint32(e[4:], 1)
		binary.LittleEndian.PutUint64(e[8:], c)
		p[16+16*len(children)+i] = byte(i + 1)
	}
}

func TestTooDeep(t *testing.T) {
	const depth = 100
	m := craft(1024, depth+3, 2)
	for id := uint64(2); id < depth+2; id++ {
		putBranch(m, id, id+1)
	}
	requireProblem(t, inspect(t, m.data).Problems, 2+64, pagecheck.KindTooDeep)
	requireProblem(t, inspectAll(t, m.data).Problems, 2+64, pagecheck.KindTooDeep)
	_, problems, err := walk(t, m.data, "journal")
	require.ErrorIs(t, err, pagecheck.ErrNoBucket)
	requireProblem(t, problems, 2+64, pagecheck.KindTooDeep)
}

func TestSelfReference(t *testing.T) {
	m := craft(1024, 4, 2)
	putBranch(m, 2, 2, 2)
	problems := inspectAll(t, m.data).Problems
	require.Contains(t, kinds(problems), pagecheck.KindReferencedTwice)
}

func TestProblemsAreBounded(t *testing.T) {
	const branches, kids = 60, 60
	m := craft(4096, branches+3, 2)
	ids := make([]uint64, 0, kids)
	for id := uint64(3); id < branches+3; id++ {
		ids = append(ids, id)
	}
	putBranch(m, 2, ids...)
	for _, id := range ids {
		bad := make([]uint64, kids)
		for i := range bad {
			bad[i] = 1 << 50
		}
		putBranch(m, id, bad...)
	}
	rep := inspect(t, m.data)
	n := 0
	for _, p := range rep.Problems {
		if p.Kind == pagecheck.KindOutOfRange {
			n++
		}
	}
	require.Equal(t, 1000, n)
	last := rep.Problems[len(rep.Problems)-1]
	require.Equal(t, pagecheck.KindMore, last.Kind)
	require.Contains(t, last.Detail, fmt.Sprint(branches*kids-1000))
	require.ErrorIs(t, rep.Err(), pagecheck.ErrDamaged)
	require.Less(t, len(rep.Err().Error()), 1000)
}

// sparse reads as zeros beyond its data.
type sparse struct {
	data []byte
	size int64
}

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for i := range p {
		if off+int64(i) >= s.size {
			return n, io.EOF
		}
		p[i] = 0
		n++
	}
	if off < int64(len(s.data)) {
		copy(p, s.data[off:])
	}
	return n, nil
}

// A file may claim any size and any overflow without having the memory go.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1 << 43 // 2^31 pages
	m := craft(4096, 8, 2)
	binary.LittleEndian.PutUint64(m.page(1)[16+40:], size/4096)
	m.sealPage(1)
	putBranch(m, 2, 3, 4, 1<<30, 5)
	for _, id := range []uint64{3, 4, 5} {
		putBranch(m, id, 6)
		m.page(id)[8] = 0x02
		m.setOverflow(id, math.MaxUint32)
		m.setCount(id, 0xFFFE)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, fn := range []func(context.Context, io.ReaderAt, int64) (pagecheck.Report, error){pagecheck.Inspect, pagecheck.InspectAll} {
		rep, err := fn(context.Background(), sparse{m.data, size}, size)
		require.NoError(t, err)
		require.False(t, rep.OK())
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))

	_, err := pagecheck.Inspect(context.Background(), sparse{m.data, math.MaxInt64}, math.MaxInt64)
	require.NoError(t, err, "the high water mark is within the limit")
	binary.LittleEndian.PutUint64(m.page(1)[16+40:], math.MaxUint64)
	m.sealPage(1)
	_, err = pagecheck.Inspect(context.Background(), sparse{m.data, math.MaxInt64}, math.MaxInt64)
	require.ErrorContains(t, err, "want at most 4294967296")
	rep, err := pagecheck.Inspect(context.Background(), bytes.NewReader(m.data), int64(len(m.data)))
	require.NoError(t, err)
	requireProblem(t, rep.Problems, 8, pagecheck.KindTruncated)
}

func TestReportErr(t *testing.T) {
	require.NoError(t, pagecheck.Report{}.Err())
	require.True(t, pagecheck.Report{}.OK())
	rep := pagecheck.Report{Problems: []pagecheck.Problem{
		{Page: 4, Kind: pagecheck.KindTruncated, Detail: "a"}, {Page: 5, Kind: pagecheck.KindIDMismatch, Detail: "b"},
		{Page: 6, Kind: pagecheck.KindIDMismatch, Detail: "c"}, {Page: 7, Kind: pagecheck.KindIDMismatch, Detail: "d"},
	}}
	require.False(t, rep.OK())
	require.EqualError(t, rep.Err(), "bbolt file is damaged: page 4: truncated: a; "+
		"page 5: page-id-mismatch: b; page 6: page-id-mismatch: c; and 1 more")
}
