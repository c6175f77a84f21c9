package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
)

// runDisk fills stores and counts their pages.
func runDisk(o *options, rs map[string]*row) ([]target, error) {
	r := rs["disk"]
	r.Work = "pages in use over bytes of content, 64 children"
	var targets []target
	for _, c := range []struct {
		name         string
		batch, bytes int
		per          int // events a child
		reach        float64
	}{
		{"one event a batch", 1, contentBytes, o.size(1000, 100), 2.1},
		{"eight a batch", 8, contentBytes, o.size(2000, 200), 1.7},
		{"one a batch, contents of 4 KiB", 1, 4 << 10, o.size(120, 20), 0},
	} {
		x, err := diskUse(o, r, c.name, c.batch, c.bytes, c.per)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if c.reach > 0 {
			targets = append(targets, atMost(fmt.Sprintf("disk-%d-a-batch", c.batch), x, c.reach))
		}
	}
	return targets, nil
}

// diskUse writes one store and returns the pages in use of store.db over the
// bytes of content. Both kinds of content are JSON of paths, hashes and words.
func diskUse(o *options, r *row, name string, batch, bytes, per int) (x float64, err error) {
	const children = 64
	dir, done, err := o.scratch("disk")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := newStore(dir, children)
	if err != nil {
		return 0, err
	}
	content := func(n int) []byte { return document(rand.New(rand.NewPCG(uint64(n), 11)), bytes) }
	err = s.fill(s.ids, filling{per: per, batch: batch, content: content})
	if err := errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	journal, err1 := useOf(filepath.Join(s.Dir(), "store.db"))
	index, err2 := useOf(filepath.Join(s.Dir(), "index.db"))
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	var stored float64
	for n := range children * per {
		stored += float64(len(content(n)))
	}
	x = journal.bytes() / stored
	r.add(name+": store.db", "x content", []float64{x})
	r.add(name+": index.db", "x content", []float64{index.bytes() / stored})
	r.detail(name, map[string]any{"store.db": journal, "index.db": index, "content_bytes": stored})
	return x, nil
}
