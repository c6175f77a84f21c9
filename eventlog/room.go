package eventlog

import (
	"fmt"
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

// measureRoom notes how many bytes of new frames and contents store.db has room
// for before the reserve: up to the limit, and in free pages that no reader
// holds back. A transaction also rewrites the pages that lead to what it puts,
// which treeSlack stands for.
func (j *journal) measureRoom() {
	max := int64(j.db.MaxSize)
	if max <= 0 {
		j.room.Store(roomForAll)
		return
	}
	pages, free, err := j.usage()
	if err != nil {
		return // the next commit meets the same failure and says so
	}
	if st := j.db.Stats(); st.OpenTxN > 0 {
		free -= min(free, uint64(st.PendingPageN))
	}
	reserve := min(reserveMost, max/reserveShare) + reserveLeast
	j.room.Store(max - int64(j.db.AllocSize) - reserve - treeSlack - int64(pages-free)*int64(j.pageSize))
}

// endsSomething reports whether a unit may use the reserve.
func endsSomething(via Entry, events []pending) bool {
	if via == EntryOperator || via == EntryStore {
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
	room := j.room.Load()
	if room == roomForAll {
		return nil
	}
	need := int64(st.group.bytes)
	if st.flight != nil {
		need += int64(st.flight.bytes)
	}
	for _, d := range drafts {
		need += int64(len(d.headers) + frameMost)
		for _, p := range d.events {
			for _, value := range p.chunks {
				need += int64(len(value))
			}
		}
	}
	if need += need / 8; need > room { // pages are not full to the last byte
		j.measureRoom() // a reader may have gone
		room = j.room.Load()
	}
	if need <= room {
		return nil
	}
	for i := range prepared {
		if !endsSomething(via, prepared[i]) {
			return fmt.Errorf("%w: store.db has room for %d bytes below its limit of %d, this append and those before it need %d", ErrNoSpace, max(room, 0), j.db.MaxSize, need)
		}
	}
	return nil
}
