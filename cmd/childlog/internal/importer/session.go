package importer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"childlog/eventlog"
	"childlog/policy"
)

// Defaults of every imported session: what a log does not state is not
// permission.
var Defaults = policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Never}

// Parts of the first line, which gives rise to two events, and of a run's end.
// A format that makes further events of a line numbers them from PartMore on.
const (
	PartLine    = 0
	PartCreated = 1
	PartSource  = 2
	PartMore    = 3
)

// Kind is the kind of the session.
func (p *Place) Kind() string {
	if p.Child {
		return eventlog.KindChild
	}
	return eventlog.KindRoot
}

// Created is session/created of a session that was imported whole or in part;
// a format adds what else its log states. parentSeq is the seq of the call in
// the parent, 0 if it is not known.
func (p *Place) Created(parentSeq uint64) eventlog.Created {
	c := eventlog.Created{Kind: p.Kind(), Parent: p.Parent, Root: p.Root, Depth: p.Depth, MaxDepth: p.Depth, Mode: eventlog.ModeOneShot,
		External: &eventlog.External{System: p.System, IDHash: eventlog.ExternalHash(p.System, p.Key)}, Defaults: Defaults, Evidence: true}
	if p.Parent != uuid.Nil {
		c.ParentSeq = parentSeq
	}
	return c
}

// CreatedEvent is the first event. Its content is what every session has there.
func (p *Place) CreatedEvent(c eventlog.Created, label, cwd string, at time.Time) (eventlog.NewEvent, error) {
	content, err := json.Marshal(struct {
		Label      string `json:"label,omitzero"`
		Cwd        string `json:"cwd,omitzero"`
		ExternalID string `json:"external_id,omitzero"`
	}{label, cwd, p.Key})
	if err != nil {
		return eventlog.NewEvent{}, err
	}
	return eventlog.NewEvent{ID: EventID(p.Session, 1, PartCreated, p.Sum), Type: eventlog.TypeSessionCreated,
		Facts: c.Facts(), Media: eventlog.MediaJSON, Content: content, Time: at}, nil
}

// errNative ends a commit that would have touched a native session.
var errNative = fmt.Errorf("%w: a native session has taken the place since", eventlog.ErrConflict)

// Admit looks again inside the commit at what the plan rests on.
func (p *Place) Admit(v *eventlog.View) error {
	for _, id := range []uuid.UUID{p.Session, p.Parent} {
		row, err := v.Row(id)
		if id == p.Parent && errors.Is(err, eventlog.ErrPurged) {
			gone, lost := v.Purged(id)
			row.Evidence, err = gone.Evidence, lost
		}
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
		case err != nil:
			return err
		case !row.Evidence:
			return errNative
		}
	}
	id, err := v.ByExternal(eventlog.ExternalHash(p.System, p.Key))
	if err == nil && id != uuid.Nil && id != p.Session {
		err = errNative
	}
	return err
}

// SourceEvent says what was read of a file. It ends a run and stands for no
// line; last is the last line's time, so that a session's last activity is its
// own and not the import's. whole says that a compressed file was read to its
// end, so that its own digest is known; more are facts of the format's own.
func (p *Place) SourceEvent(in *Input, path string, prefix Prefix, whole bool, last, created time.Time, more ...any) eventlog.NewEvent {
	pairs := append([]any{"lines", prefix.Lines, "bytes", prefix.Bytes, "sha256", eventlog.Hash(prefix.Sum)}, more...)
	if whole {
		pairs = append(pairs, "compressed", "zstd", "file_bytes", in.Size(), "file_sha256", eventlog.Hash(in.RawSum()))
	}
	return eventlog.NewEvent{ID: EventID(p.Session, prefix.Lines, PartSource, prefix.Sum), Type: TypeSource,
		Facts: Facts(pairs...), Media: eventlog.MediaText, Content: []byte(strings.ToValidUTF8(path, "\ufffd")), Ignorable: true,
		Time: cmp.Or(last, created)}
}
