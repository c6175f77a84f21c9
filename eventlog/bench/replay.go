package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"childlog/eventlog"
	"childlog/replay"
)

// verifiedReplay is the row's childlog side: everything that a cold resume
// verifies, which is checksums, chain, commitments and the fold. It returns
// how many events it covered.
func verifiedReplay(ctx context.Context, s *eventlog.Store, id uuid.UUID) (uint64, error) {
	r, err := replay.Resume(ctx, s, replay.Request{Session: id, By: replay.AsOperator()})
	return r.Row.Head, err
}

// runReplay reads one log in childlog and the same events from JSONL.
func runReplay(o *options, rs map[string]*row) (targets []target, err error) {
	r := rs["replay"]
	events := o.size(100_000, 20_000)
	r.Work = fmt.Sprintf("verified replay of %s events, 8 a batch, one core", grouped(float64(events)))
	dir, done, err := o.scratch("replay")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	built, err := newStore(dir, 1)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(built.fill(built.ids, filling{per: events, batch: 8, content: toolOutput}), built.Close()); err != nil {
		return nil, err
	}
	lines, plain := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "plain.jsonl")
	if err := errors.Join(writeLines(lines, events, toolOutput), writeLines(plain, events, nil)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	s, err := eventlog.Open(ctx, built.Dir(), eventlog.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	rate := func(n int, err error, begin time.Time) (float64, error) {
		if err == nil && n < events {
			err = fmt.Errorf("want %d events, got %d", events, n)
		}
		return float64(n) / time.Since(begin).Seconds(), err
	}
	ours := func() (float64, error) {
		begin := time.Now()
		n, err := verifiedReplay(ctx, s, built.ids[0])
		return rate(int(n), err, begin)
	}
	rounds, err := interleave(o.budget, max(5, o.rounds), ours, decoding[rawLine](rate, lines), decoding[mapLine](rate, lines), decoding[anyLine](rate, lines), decoding[rawLine](rate, plain))
	if err != nil {
		return nil, err
	}
	first := rounds[0]
	r.add("childlog", "events/s", first.values)
	r.add("childlog, per second of CPU time", "events/s", first.perCPU())
	for i, name := range []string{"jsonl, facts left raw", "jsonl, facts into a map", "jsonl, each line into a map", "jsonl, facts raw, text without escapes"} {
		peer := rounds[i+1]
		r.add(name, "events/s", peer.values)
		r.note("by CPU time childlog is %s times %s", figure(ratio(first.perCPU(), peer.perCPU())), name)
	}
	if err := coldReplay(o, r, built.Dir(), built.ids[0]); err != nil {
		return nil, err
	}
	return []target{atLeast("replay-events/s", median(first.values), 700_000), atLeast("replay/jsonl", ratio(first.values, rounds[1].values), 7)}, nil
}

// toolOutput is the content of event n: JSON as tools return it. In a JSONL file
// its quotes are escaped.
func toolOutput(n int) []byte { return document(rand.New(rand.NewPCG(uint64(n), 5)), contentBytes) }

// decoding times decodeLines with rate.
func decoding[L interface{ number() uint64 }](rate func(int, error, time.Time) (float64, error), path string) func() (float64, error) {
	return func() (float64, error) {
		begin := time.Now()
		n, err := decodeLines[L](path)
		return rate(n, err, begin)
	}
}

// coldReplay tells how much slower the first replay is when the files are not
// in the page cache. It is for information.
func coldReplay(o *options, r *row, dir string, id uuid.UUID) error {
	ctx := context.Background()
	rounds, err := repeat(o.budget, o.size(3, 1), func() (float64, error) {
		if err := evict(filepath.Join(dir, "store.db"), filepath.Join(dir, "index.db")); err != nil {
			return 0, err
		}
		begin := time.Now()
		s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
		if err != nil {
			return 0, err
		}
		n, err := verifiedReplay(ctx, s, id)
		return float64(n) / time.Since(begin).Seconds(), errors.Join(err, s.Close())
	})
	if err == nil {
		r.add("childlog, cold file, open included", "events/s", rounds)
	}
	return err
}

// evict asks the kernel to drop the files' pages. Pages that some process has
// mapped stay.
func evict(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// rawLine is a record whose facts stay encoded, as childlog leaves them.
type rawLine struct {
	Seq     uint64          `json:"seq"`
	ID      uuid.UUID       `json:"id"`
	Type    string          `json:"type"`
	Time    time.Time       `json:"time"`
	Facts   json.RawMessage `json:"facts"`
	Content string          `json:"content"`
}

// mapLine is a record whose facts are decoded.
type mapLine struct {
	Seq     uint64         `json:"seq"`
	ID      uuid.UUID      `json:"id"`
	Type    string         `json:"type"`
	Time    time.Time      `json:"time"`
	Facts   map[string]any `json:"facts"`
	Content string         `json:"content"`
}

func (l rawLine) number() uint64 { return l.Seq }
func (l mapLine) number() uint64 { return l.Seq }

// anyLine is a record that nothing is known of.
type anyLine map[string]any

func (l anyLine) number() uint64 {
	seq, _ := l["seq"].(float64)
	return uint64(seq)
}

func writeLines(path string, events int, content func(int) []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	src := newSource(0)
	for n := range events {
		r, err := src.next()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if content != nil {
			r.Content = string(content(n))
		}
		line, err := r.json()
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// decodeLines decodes every line and checks that the seqs have no gap, which
// is all that such a log can tell.
func decodeLines[L interface{ number() uint64 }](path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		var l L
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return n, err
		}
		if n++; l.number() != uint64(n) {
			return n, fmt.Errorf("line %d has seq %d", n, l.number())
		}
	}
	return n, lines.Err()
}
