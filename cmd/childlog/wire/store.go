package wire

import (
	"time"

	"childlog/eventlog"
)

// Store says which store a directory is.
type Store struct {
	Store       string `json:"store"`
	Path        string `json:"path"`
	Format      int    `json:"format"`
	Incarnation uint64 `json:"incarnation"`
	Created     string `json:"created"`
	Key         string `json:"key"` // verifier key of the store's checkpoints
}

// Stats describes a store.
type Stats struct {
	Store          string `json:"store"`
	Path           string `json:"path"`
	Format         int    `json:"format"`
	Incarnation    uint64 `json:"incarnation"`
	Backup         bool   `json:"backup"`
	Sessions       uint64 `json:"sessions"`
	Events         uint64 `json:"events"`
	Frames         uint64 `json:"frames"`
	JournalBytes   int64  `json:"journal_bytes"`
	IndexBytes     int64  `json:"index_bytes"`
	Pages          int    `json:"pages"` // free ones included
	FreePages      int    `json:"free_pages"`
	PageSize       int    `json:"page_size"`
	CompactAdvised bool   `json:"compact_advised"`
	IndexLag       uint64 `json:"index_lag"`
	FoldVersion    int    `json:"fold_version"`
	Key            string `json:"key"`    // verifier key of the checkpoints, "" if nothing was signed yet
	Signed         uint64 `json:"signed"` // positions that the last checkpoint covers
}

// StatsOf converts a store's figures.
func StatsOf(id eventlog.Identity, dir string, st eventlog.Stats) Stats {
	return Stats{Store: id.Store.String(), Path: dir, Format: st.Format, Incarnation: st.Incarnation, Backup: id.Backup, Sessions: st.Sessions, Events: st.Events,
		Frames: st.Frames, JournalBytes: st.JournalBytes, IndexBytes: st.IndexBytes, Pages: st.Pages, FreePages: st.FreePages, PageSize: st.PageSize,
		CompactAdvised: st.WantsCompact(), IndexLag: st.Lag, FoldVersion: st.Fold, Key: id.Key, Signed: st.Signed}
}

// Large is a session among the largest.
type Large struct {
	Session string `json:"session"`
	Label   string `json:"label"`
	Events  uint64 `json:"events"`
}

// Size is what a part of a store takes, as it is stored.
type Size struct {
	Keys  uint64 `json:"keys"`
	Bytes uint64 `json:"bytes"`
}

// Day is what was appended on a day, UTC.
type Day struct {
	Date   string `json:"date"`
	Events uint64 `json:"events"`
	Bytes  uint64 `json:"bytes"`
}

// DayOf converts a day.
func DayOf(d eventlog.Day) Day {
	return Day{Date: d.Date.Format(time.DateOnly), Events: d.Events, Bytes: d.Bytes}
}

// Measured is what a scan of a store found. Days are the newest first; Earlier
// is all that came before them, null if nothing did.
type Measured struct {
	Frames     Size  `json:"frames"`
	Contents   Size  `json:"contents"`
	Tombstones Size  `json:"tombstones"`
	Days       []Day `json:"days"`
	Earlier    *Day  `json:"earlier"`
}

// MeasuredOf converts a scan.
func MeasuredOf(m eventlog.Measured) *Measured {
	out := &Measured{Frames: Size(m.Frames), Contents: Size(m.Contents), Tombstones: Size(m.Tombstones), Days: []Day{}}
	for _, d := range m.Days {
		out.Days = append(out.Days, DayOf(d))
	}
	if m.Earlier.Events > 0 {
		d := DayOf(m.Earlier)
		out.Earlier = &d
	}
	return out
}

// StoreStats is the answer of stats. Measured is null unless it was asked for.
type StoreStats struct {
	Stats
	Largest  []Large   `json:"largest"`
	Measured *Measured `json:"measured"`
}

// Copied is what went into a copy of a store.
type Copied struct {
	Bytes      int64  `json:"bytes"`
	Frames     uint64 `json:"frames"`
	Events     uint64 `json:"events"`
	Contents   uint64 `json:"contents"`
	Erased     uint64 `json:"erased"`
	Tombstones uint64 `json:"tombstones"`
	Lost       uint64 `json:"lost"`
}

// CopiedOf converts what a copy counted.
func CopiedOf(c eventlog.Copied) Copied {
	return Copied{c.Bytes, c.Frames, c.Events, c.Contents, c.Erased, c.Tombstones, c.Lost}
}

// Compacted is the answer of compact; its bytes are those after.
type Compacted struct {
	Store       string `json:"store"`
	Path        string `json:"path"`
	PageSize    int    `json:"page_size"`
	BytesBefore int64  `json:"bytes_before"`
	Copied
}

// BackedUp is the answer of backup.
type BackedUp struct {
	Store       string `json:"store"`
	Path        string `json:"path"`
	Incarnation uint64 `json:"incarnation"`
	Copied
}

// Restored is the answer of restore.
type Restored struct {
	Store             string `json:"store"`
	Path              string `json:"path"`
	Incarnation       uint64 `json:"incarnation"`
	Backup            string `json:"backup"`
	BackupIncarnation uint64 `json:"backup_incarnation"`
	Copied
}
