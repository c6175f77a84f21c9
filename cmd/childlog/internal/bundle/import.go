package bundle

import (
	"context"
	"io"
	"strings"

	"childlog/eventlog"
)

// Imported is the outcome of an import.
type Imported struct {
	Report   *Report // of a bundle
	Sessions []Taken
	Events   uint64 // appended, or in a dry run those that would be
	Status   string // how well the logs were proven; what store/imported says
}

// ImportOptions of an import.
type ImportOptions struct {
	Anchors
	DryRun bool
	By     string // who takes the logs in; a code
}

// Import takes the logs of a bundle into a store as evidence: chain hashes and
// receipts are the same there, and nothing in them is ever authority. The bundle
// is checked in full before anything is written, and refused as a whole if
// anything in it is not what it was, a log is not whole, or a session of the
// store stands in the way: a native one with another log, or evidence that went
// on otherwise. The store's own session of the bundle is not taken in. Nor
// is a session that was purged here, whose outcome says so: what was removed on
// record does not come back, and keeps nothing else from coming in.
//
// A second import adds nothing; a later bundle of the same sessions goes on where
// the first one ended. An import that was interrupted is finished by repeating
// it. in is read two or three times from its beginning.
//
// Errors: ErrCorrupt (what the check found), ErrConflict with the first seq that
// differs, ErrUnauthorized (it would be attached to a native session, or take
// its external id), ErrInvalid, and those of a commit.
func Import(ctx context.Context, s *eventlog.Store, in io.ReadSeeker, o ImportOptions) (*Imported, error) {
	rewind := func() error {
		_, err := in.Seek(0, io.SeekStart)
		return err
	}
	if err := rewind(); err != nil {
		return nil, err
	}
	r, err := Verify(ctx, in, o.Anchors)
	if err != nil {
		return nil, err
	}
	if err := sound(r); err != nil {
		return nil, err
	}
	record := eventlog.ImportRecord{Store: r.Store, Status: strings.ReplaceAll(string(r.Status()), " ", "_"), By: o.By}
	if r.Signer == "" {
		record.Status = StatusUnproven
	} else {
		record.TreeSize, record.TreeRoot = r.Checkpoint.Size, r.Checkpoint.Root
	}
	logs := Logs{Record: record, Each: func(ctx context.Context, fn func(*eventlog.RawFrame) error) error {
		if err := rewind(); err != nil {
			return err
		}
		_, _, end, err := read(ctx, in, visitor{frame: func(f *eventlog.RawFrame, _ []bool) error { return fn(f) }, subtree: func(node, bool) error { return nil }})
		if err == nil && end.digest != r.Digest {
			err = &eventlog.CorruptError{Reason: "bundle: the file changed while it was read"}
		}
		return err
	}}
	for _, l := range r.Sessions {
		logs.List = append(logs.List, l.Listed)
	}
	done, err := TakeIn(ctx, s, logs, o.DryRun)
	if done != nil {
		done.Report = r
	}
	return done, err
}

// StatusUnproven is what store/imported says of logs that nobody vouched for.
const StatusUnproven = "unproven"

// sound refuses what must not be taken in.
func sound(r *Report) error {
	for _, f := range r.Findings {
		if !f.Missing {
			return &eventlog.CorruptError{Session: f.Session, Seq: f.Seq, Reason: "bundle: " + f.Kind + ": " + f.Detail}
		}
	}
	for _, l := range r.Sessions {
		if !l.Complete {
			return &eventlog.CorruptError{Session: l.Session, Reason: "bundle: the log is not whole, so nothing of the bundle is taken in"}
		}
	}
	return nil
}
