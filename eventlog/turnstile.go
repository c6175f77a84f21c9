package eventlog

import (
	"context"
	"sync"
)

// turnstile lets through either those who copy or compare what is durable or
// those who erase, any number of one kind at a time. A copy is made of a prefix
// of the journal, and contents are read long after its end was fixed: one that
// was erased in between would be missing in the copy, whose prefix lacks the
// event that says so. A reader of single pages needs no such thing, see
// redactions.
//
// It is for one process: nobody else can write the store. The zero value is
// open.
type turnstile struct {
	mu     sync.Mutex
	inside [2]int
	left   broadcast
}

const (
	copies = iota
	erasers
)

// enter waits until no other kind is inside, or ctx ends. Each enter that
// succeeds needs one leave.
func (t *turnstile) enter(ctx context.Context, kind int) error {
	for {
		t.mu.Lock()
		if t.inside[1-kind] == 0 {
			t.inside[kind]++
			t.mu.Unlock()
			return nil
		}
		left := t.left.wait()
		t.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *turnstile) leave(kind int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside[kind]--; t.inside[kind] == 0 {
		t.left.wake()
	}
}
