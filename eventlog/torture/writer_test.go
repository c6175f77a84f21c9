package torture_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"childlog/eventlog"
)

// assignment is what a writing process is told, as JSON in its environment.
type assignment struct {
	Plot  plot
	Dir   string
	From  []int // by worker: the operation to begin with
	Count int   // operations each worker does; 0: without end
	Cycle bool  // close and open the store now and then

	Linger bool // long enough for the index to be written by its timer
}

const assignmentVar = "CHILDLOG_TORTURE_ASSIGNMENT"

func (a assignment) env() string {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return assignmentVar + "=" + string(b)
}

func assigned() (a assignment) {
	fail(json.Unmarshal([]byte(os.Getenv(assignmentVar)), &a))
	return a
}

// say prints one line in one write, which a kill can't tear.
func sayLine(v any) {
	b, err := json.Marshal(v)
	fail(err)
	_, err = os.Stdout.Write(append(b, '\n'))
	fail(err)
}

func init() {
	// Runs the scripts and says each acknowledgement after it has it.
	roles["write"] = func() {
		a := assigned()
		s, err := eventlog.Open(ctx, a.Dir, eventlog.Options{})
		fail(err)
		var open sync.RWMutex // to be written by whoever closes the store
		var wg sync.WaitGroup
		for g := range a.Plot.Workers {
			wg.Go(func() {
				sc := a.Plot.script(g)
				for range a.From[g] {
					sc.next()
				}
				for n := 0; a.Count == 0 || n < a.Count; n++ {
					o := sc.next()
					open.RLock()
					var done ack
					var err error
					if n == 0 { // a process before this one may have done it
						done, err = sc.repeat(s, o)
					} else {
						var row eventlog.Row
						row, err = s.Row(o.session)
						fail(err)
						done, err = o.do(s, a.Plot, row.Head)
					}
					if err != nil {
						fail(fmt.Errorf("worker %d, operation %d: %w", o.g, o.n, err))
					}
					sayLine(done)
					open.RUnlock()
				}
			})
		}
		if a.Cycle {
			go func() {
				for {
					time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
					open.Lock()
					fail(s.Close())
					s, err = eventlog.Open(ctx, a.Dir, eventlog.Options{})
					fail(err)
					open.Unlock()
				}
			}()
		}
		wg.Wait()
		fail(s.Close())
	}
}

// repeat does the script's latest operation, which may have been done before
// by somebody who never heard of it. Only a switch has to look first: it is
// what its caller sets now, so twice is twice.
func (s *script) repeat(store *eventlog.Store, o *op) (ack, error) {
	row, err := store.Row(o.session)
	if err != nil {
		return ack{}, err
	}
	before, switches := row.Head, 0
	err = store.Replay(ctx, o.session, false, func(ev *eventlog.Event) error {
		switch {
		case ev.ID == s.eventID(o.g, o.n, 0):
			before = ev.Seq - 1
		case ev.Type == eventlog.TypeSandboxMode:
			switches++
		}
		return nil
	})
	if err != nil {
		return ack{}, err
	}
	if o.kind == change && !o.refused && switches == s.members[0].counts[eventlog.TypeSandboxMode] {
		return ack{G: o.g, N: o.n, Found: true}, nil
	}
	return o.do(store, s.plot, before)
}

// isFailure tells what a process says when it gives up from an acknowledgement.
func isFailure(text string) bool { return strings.HasPrefix(text, "failed:") }
