package eventlog

import (
	"fmt"
	"sync"
)

// Options.MaxSize bounds store.db. What is left at the end of it is kept for
// what ends something or takes a right away: a store that is full must still
// let a turn end, a run settle and an operator narrow. Everything else is
// refused a little earlier, and told the same as on a full disk.
const (
	reserveShare = 16       // of MaxSize
	reserveLeast = 96 << 10 // bytes
	reserveMost  = 16 << 20 // bytes
	treeSlack    = 128 << 10
)

// roomForAll is what is left for every kind of event, in bytes, when there is
// no limit.
const roomForAll = 1 << 62

// roomGauge is what store.db has left before the reserve.
type roomGauge struct {
	mu    sync.Mutex
	bytes int64  // may be below zero; roomForAll: no limit
	next  uint64 // position up to which frames are in the file already
}

// measureRoom notes how many bytes of new frames and contents store.db has room
// for before the reserve: up to the limit, and in free pages that no reader holds
// back. A transaction also rewrites the pages that lead to what it puts,
// which treeSlack stands for.
func (j *journal) measureRoom() {
	j.room.mu.Lock()
	defer j.room.mu.Unlock()
	max := int64(j.db.MaxSize)
	if max <= 0 {
		j.room.bytes = roomForAll
		return
	}
	// What is committed in between is taken for not there: a little less room.
	_, next, err := j.ends()
	if err != nil {
		return // the next commit meets the same failure and says so
	}
	pages, free, err := j.usage()
	if err != nil {
		return
	}
	if st := j.db.Stats(); st.OpenTxN > 0 {
		free -= min(free, uint64(st.PendingPageN))
	}
	reserve := min(reserveMost, max/reserveShare) + reserveLeast
	j.room.bytes, j.room.next = max-int64(j.db.AllocSize)-reserve-treeSlack-int64(pages-free)*int64(j.pageSize), next
}

func (j *journal) roomLeft() (bytes int64, next uint64) {
	j.room.mu.Lock()
	defer j.room.mu.Unlock()
	return j.room.bytes, j.room.next
}

// charge is what a value of n bytes takes in pages that hold two values or
// more, as bbolt's do.
func (j *journal) charge(n int) int64 {
	size, page := int64(n)+64, int64(j.pageSize)
	if size <= page/4 {
		return size + size/8
	}
	many := max(2, page/size)
	return (many*size + page - 1) / page * page / many
}

// endsSomething reports whether a unit may use the reserve.
func endsSomething(via Entry, events []pending) bool {
	if via == EntryOperator || via == EntryStore || via == EntryErase {
		return true
	}
	for i := range events {
		switch events[i].typ {
		case TypeTurnEnd, TypeStepEnd, TypeToolResult, TypeToolDecision, TypeApprovalDecided, TypeActivationEnded,
			TypeSessionSettled, TypeSessionClosed, TypeControlInterrupt, TypeNoticeConsumed:
			if len(events[i].content) > reserveLeast/2 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// checkRoom refuses a unit for which the group would leave no reserve.
func (st *stage) checkRoom(via Entry, prepared [][]pending, drafts []*draft) error {
	j := st.s.journal
	if room, _ := j.roomLeft(); room == roomForAll {
		return nil
	}
	charge := int64(0)
	for _, d := range drafts {
		charge += j.charge(len(d.headers) + frameMost)
		for _, p := range d.events {
			for _, value := range p.chunks {
				charge += j.charge(len(value))
			}
		}
	}
	left := func() (room, need int64) {
		room, next := j.roomLeft()
		need = st.group.charge + charge
		if st.flight != nil && st.flight.next > next {
			need += st.flight.charge
		}
		return room, need
	}
	room, need := left()
	if need > room {
		j.measureRoom() // a reader may have gone
		room, need = left()
	}
	if need > room {
		for i := range prepared {
			if !endsSomething(via, prepared[i]) {
				return fmt.Errorf("%w: store.db has room for %d bytes below its limit of %d, this append and those before it need %d", ErrNoSpace, max(room, 0), j.db.MaxSize, need)
			}
		}
	}
	st.group.charge += charge
	return nil
}
