package eventlog

import bolt "go.etcd.io/bbolt"

// ReleasePages gives back what this process has mapped of store.db by reading
// and writing. The pages stay in the system's cache and are mapped again when
// they are needed, so nothing is lost but a moment. It is for imports and other
// long work, whose memory would else be seen to grow with the file although none
// of it is the process's own. Where the system can't do that it does nothing.
func (s *Store) ReleasePages() {
	if s.usable() != nil {
		return
	}
	_ = s.journal.view(func(tx *bolt.Tx) error { // keeps the map where it is
		releaseMapped(tx.DB().Info().Data, uintptr(tx.Size()))
		return nil
	})
}
