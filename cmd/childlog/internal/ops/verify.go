package ops

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/replay"
)

// findingPolicy is a finding beside those of package eventlog: a policy that
// can't be read.
const findingPolicy = "policy"

// VerifyOptions say what is verified, and against what.
type VerifyOptions struct {
	Session  string             // named as for [Resolve]; "": the whole store
	Against  eventlog.Against   // what was kept elsewhere
	Key      string             // of Against, as whoever gave it named it; "": none was given
	Names    []string           // of the checkpoints of Against, likewise
	Progress func(done, of int) // as of [eventlog.CheckOptions]
}

// Verify checks the whole store or what concerns one session, and rebuilds the
// policies from the logs. Damage is in the answer; an error means that nothing
// was established.
func Verify(ctx context.Context, s *eventlog.Store, o VerifyOptions) (wire.Verified, error) {
	v := wire.Verified{Status: eventlog.StatusFailed, Findings: []wire.Finding{}, Notes: []wire.Finding{}, Signed: unsigned()}
	err := verify(ctx, s, &o, &v)
	if errors.Is(err, eventlog.ErrCorrupt) {
		v.Findings = append(v.Findings, findingOf(eventlog.FindPages, uuid.Nil, err))
		err = nil
	}
	if err != nil {
		return wire.Verified{}, err
	}
	conclude(&v)
	return v, nil
}

// verify fills in what was found.
func verify(ctx context.Context, s *eventlog.Store, o *VerifyOptions, v *wire.Verified) (err error) {
	session := uuid.Nil
	if o.Session != "" {
		if session, err = Resolve(ctx, s, o.Session); err != nil {
			return err
		}
	}
	report, err := s.Check(ctx, eventlog.CheckOptions{Session: session, Against: o.Against, Progress: o.Progress})
	if err != nil {
		return err
	}
	v.Sessions, v.Events, v.Frames, v.Contents, v.Bytes = report.Sessions, report.Events, report.Frames, report.Contents, report.Bytes
	found(v, &report)
	v.Status, v.Redacted, v.Withheld, v.Purged = report.Status(), report.Redacted, report.Withheld, report.Purged
	v.Signed = signedOf(s, o, &report)
	if s.RolledBack() != nil { // none may be read, for a reason that was found above
		return nil
	}
	return checkPolicies(ctx, s, session, v)
}

// VerifyUnopened is the answer about a store at dir that can't be opened, for the
// reason that opening it gave: its pages can be looked at all the same.
func VerifyUnopened(ctx context.Context, dir string, reason error) (wire.Verified, error) {
	v := wire.Verified{Status: eventlog.StatusFailed, Findings: []wire.Finding{}, Notes: []wire.Finding{}, Signed: unsigned()}
	report, err := eventlog.CheckPages(ctx, dir)
	if err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
		return wire.Verified{}, errors.Join(reason, err)
	}
	found(&v, &report)
	v.Findings = append(v.Findings, findingOf(eventlog.FindPages, uuid.Nil, reason))
	conclude(&v)
	return v, nil
}

// conclude says what all of it comes to.
func conclude(v *wire.Verified) {
	if v.OK = len(v.Findings) == 0; !v.OK && v.Status != eventlog.StatusIncomplete {
		v.Status = eventlog.StatusFailed // a policy that can't be read, say
	}
	v.Statement = statement(v)
}

func found(v *wire.Verified, report *eventlog.CheckReport) {
	v.More = report.More
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, wire.FindingOf(f))
	}
}

// findingOf makes a finding of an error that says where something is wrong.
func findingOf(kind string, session uuid.UUID, err error) wire.Finding {
	f := eventlog.Finding{Kind: kind, Session: session, Detail: err.Error()}
	if ce := (*eventlog.CorruptError)(nil); errors.As(err, &ce) {
		f.Seq, f.Position = ce.Seq, ce.Position
	}
	return wire.FindingOf(f)
}

// checkPolicies rebuilds the policy of every session, or of one; of the store's
// own, which has none, the rules.
func checkPolicies(ctx context.Context, s *eventlog.Store, only uuid.UUID, v *wire.Verified) error {
	return s.EachRow(ctx, func(r *eventlog.Row) (bool, error) {
		if only != uuid.Nil && r.Session != only {
			return true, nil
		}
		var e replay.Effective
		var err error
		if r.Session == eventlog.StoreSession {
			_, err = replay.Rules(ctx, s)
		} else {
			e, err = replay.Policy(ctx, s, r.Session, 0)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			v.Findings = append(v.Findings, findingOf(findingPolicy, r.Session, err))
			return true, nil
		}
		for _, f := range e.Findings {
			v.Notes = append(v.Notes, wire.Finding{Kind: f.Code, Session: wire.ID(r.Session), Seq: f.Seq, Detail: f.Detail})
		}
		return true, nil
	})
}
