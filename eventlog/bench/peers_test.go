package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"childlog/eventlog"
)

// contenders that store records, all but bbolt-bare, which stores no records.
var contenders = map[string]func(dir string, sessions int) (peer, error){
	"childlog": func(dir string, n int) (peer, error) { return newStore(dir, n) },
	"jsonl":    newJSONL, "sqlite": newSQLite, "bbolt-tx": newBoltTx, "tidwall-wal": newWAL,
	"bbolt-bare": func(dir string, _ int) (peer, error) { return newBoltBare(dir, 500) },
}

const appendVariable = "CHILDLOG_BENCH_TEST_APPEND"

// TestMain appends with one contender if the environment names one, for
// TestEveryAppendSyncs, or does a task of the benchmark.
func TestMain(m *testing.M) {
	if task := os.Getenv(taskVariable); task != "" {
		exit(runTask(task, os.Args[1:]))
	}
	if name := os.Getenv(appendVariable); name != "" {
		exit(appendMarked(name, os.Args[1]))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const appended = 20

// appendMarked appends between two marks in the trace.
func appendMarked(name, dir string) error {
	p, err := contenders[name](dir, 2)
	if err != nil {
		return err
	}
	srcs := []*source{newSource(0), newSource(1)}
	if err := os.WriteFile(filepath.Join(dir, markBegin), []byte("."), 0o600); err != nil {
		return err
	}
	for i := range appended {
		r, err := srcs[i%2].next()
		if err == nil {
			err = p.Append(i%2, r)
		}
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, markEnd), []byte("."), 0o600); err != nil {
		return err
	}
	return p.Close()
}

// TestEveryAppendSyncs counts the syncs of each contender, so that none is
// measured with less durability than another.
func TestEveryAppendSyncs(t *testing.T) {
	strace, err := findStrace()
	if err != nil {
		t.Skip(err)
	}
	for name := range contenders {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			trace := filepath.Join(dir, "trace")
			cmd := exec.Command(strace, "-f", "-y", "-s", "0", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o", trace, os.Args[0], dir)
			cmd.Env = append(os.Environ(), appendVariable+"="+name)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			f, err := os.Open(trace)
			require.NoError(t, err)
			defer f.Close()
			files, err := parseTrace(f)
			require.NoError(t, err)
			syncs := 0
			for _, c := range files {
				syncs += c.Syncs
			}
			require.GreaterOrEqual(t, syncs, appended, "%v", files)
		})
	}
}

// TestPeersKeepEverything appends to each and reads the records back with the
// library's own reader.
func TestPeersKeepEverything(t *testing.T) {
	const sessions, each = 3, 5
	write := func(t *testing.T, name string) (p peer, dir string, want [][]*record) {
		dir = t.TempDir()
		p, err := contenders[name](dir, sessions)
		require.NoError(t, err)
		want = make([][]*record, sessions)
		for i := range want {
			src := newSource(i)
			for range each {
				r, err := src.next()
				require.NoError(t, err)
				require.NoError(t, p.Append(i, r))
				want[i] = append(want[i], r)
			}
		}
		return p, dir, want
	}
	same := func(t *testing.T, want *record, raw []byte) {
		t.Helper()
		var got record
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, *want, got)
	}
	t.Run("jsonl", func(t *testing.T) {
		p, dir, want := write(t, "jsonl")
		require.NoError(t, p.Close())
		for i := range want {
			b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%04d.jsonl", i)))
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
			require.Len(t, lines, each)
			for k, line := range lines {
				same(t, want[i][k], []byte(line))
			}
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		p, _, want := write(t, "sqlite")
		journal, synchronous, err := p.(*sqlite).durability(context.Background())
		require.NoError(t, err)
		require.Equal(t, "wal", journal)
		require.Equal(t, synchronousFull, synchronous)
		for i := range want {
			for _, r := range want[i] {
				var id []byte
				var content string
				require.NoError(t, p.(*sqlite).conn.QueryRowContext(context.Background(), `SELECT id, content FROM events WHERE session = ? AND seq = ?`, i, r.Seq).Scan(&id, &content))
				require.Equal(t, r.ID[:], id)
				require.Equal(t, r.Content, content)
			}
		}
		require.NoError(t, p.Close())
	})
	t.Run("bbolt-tx", func(t *testing.T) {
		p, _, want := write(t, "bbolt-tx")
		b := p.(*boltTx)
		require.False(t, b.db.NoSync || b.db.NoGrowSync || b.db.NoFreelistSync)
		require.NoError(t, b.db.View(func(tx *bolt.Tx) error {
			for i := range want {
				k := 0
				require.NoError(t, tx.Bucket(b.names[i]).ForEach(func(_, v []byte) error { same(t, want[i][k], v); k++; return nil }))
				require.Equal(t, each, k)
			}
			return nil
		}))
		require.NoError(t, p.Close())
	})
	t.Run("tidwall-wal", func(t *testing.T) {
		require.False(t, walOptions().NoSync)
		p, _, want := write(t, "tidwall-wal")
		for i := range want {
			for _, r := range want[i] {
				raw, err := p.(*walLog).logs[i].Read(r.Seq)
				require.NoError(t, err)
				same(t, r, raw)
			}
		}
		require.NoError(t, p.Close())
	})
	t.Run("childlog", func(t *testing.T) {
		p, _, want := write(t, "childlog")
		s := p.(*store)
		for i := range want {
			page, err := s.Read(context.Background(), s.ids[i], eventlog.ReadOptions{From: s.base[i] + 1, Contents: true})
			require.NoError(t, err)
			require.Len(t, page.Events, each)
			for k, ev := range page.Events {
				require.Equal(t, want[i][k].ID, ev.ID)
				require.Equal(t, want[i][k].Type, ev.Type)
				require.Equal(t, want[i][k].Content, string(ev.Content))
			}
		}
		report, err := s.Check(context.Background(), eventlog.CheckOptions{})
		require.NoError(t, err)
		require.True(t, report.OK(), "%v", report.Findings)
		require.NoError(t, s.Close())
	})
}

// TestStoredBytes: the floor puts as many bytes as childlog stores, more than
// the content and less than twice it.
func TestStoredBytes(t *testing.T) {
	n, err := storedBytes(t.TempDir())
	require.NoError(t, err)
	require.Greater(t, n, contentBytes+100)
	require.Less(t, n, 2*contentBytes)
}
