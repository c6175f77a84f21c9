package importer

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/files"
)

// Options of an import.
type Options struct {
	DryRun   bool // read, check and report; write nothing
	Strict   bool // of a file with an unreadable line, take nothing
	Progress func(done, of int64)
	Files    files.Files // whose the paths are; nil: this process's
}

// Report is the outcome of an import. Delegations and drift are what it is
// for: who delegated whom under what, and whose policy at work was another.
type Report struct {
	Files          int          `json:"files"`       // found, skipped ones included
	Sessions       int          `json:"sessions"`    // in those files
	Events         int64        `json:"events"`      // appended by this run; in a dry run those it would append
	Delegations    int          `json:"delegations"` // children in those files
	Findings       []Finding    `json:"findings"`
	Skipped        int          `json:"skipped"`   // files of which nothing was taken
	Unchanged      int          `json:"unchanged"` // files that are what an earlier run read of them
	System         string       `json:"system"`
	DryRun         bool         `json:"dry_run"`
	NewSessions    int          `json:"new_sessions"`
	Lines          int64        `json:"lines"`   // read
	Refused        int          `json:"refused"` // files, by Strict; skipped too
	Kept           Kept         `json:"kept"`
	SessionList    []Session    `json:"session_list"`
	DelegationList []Delegation `json:"delegation_list"`
	Drift          []Drift      `json:"drift"`
}

// Kept counts the lines that are kept without being understood.
type Kept struct {
	Blank      int64 `json:"blank"`
	NonObject  int64 `json:"non_object"`
	Untyped    int64 `json:"untyped"`
	Unreadable int64 `json:"unreadable"`
	TooLong    int64 `json:"too_long"`
	Malformed  int64 `json:"malformed"`    // of a known type, without what the type needs
	Unknown    int64 `json:"unknown_type"` // of a type that the importer does not know
	Duplicate  int64 `json:"duplicate"`    // that repeat one which counted
}

// Session is what a file held.
type Session struct {
	ID        uuid.UUID `json:"session"`
	External  string    `json:"external"`
	File      string    `json:"file"`
	Kind      string    `json:"kind"`
	Label     string    `json:"label"`
	New       bool      `json:"new"`
	Lines     int64     `json:"lines"`  // whole ones in the file
	Events    int64     `json:"events"` // appended by this run
	Inherited int64     `json:"inherited"`
	Bytes     int64     `json:"bytes"`  // of the whole lines
	SHA256    string    `json:"sha256"` // of the whole lines
	Sandbox   string    `json:"sandbox"`
	Approvals string    `json:"approvals"`
}

// Marks of a fact: how far a log itself says it. Absence is never permission.
const (
	Recorded = "recorded" // an event states it
	Inferred = "inferred" // concluded from something that was meant otherwise
	Absent   = "absent"   // nowhere
)

// Fact is one statement about a policy and how far the log backs it.
type Fact struct {
	Value string `json:"value"`
	Mark  string `json:"mark"`
	Seq   uint64 `json:"seq"` // of the event in its session
}

func (f Fact) String() string {
	if f.Value == "" {
		return f.Mark
	}
	return fmt.Sprintf("%s (%s)", f.Value, f.Mark)
}

// Delegation is one child with what is known of how it came to be.
type Delegation struct {
	Child          uuid.UUID `json:"child"`
	ChildExternal  string    `json:"child_external"`
	Parent         uuid.UUID `json:"parent"` // absent: no parent that can be named
	ParentExternal string    `json:"parent_external"`
	ParentMark     string    `json:"parent_mark"`  // recorded in the child's header, inferred, absent
	ParentKnown    bool      `json:"parent_known"` // its log is imported too
	Depth          int       `json:"depth"`
	Label          string    `json:"label"`
	Provider       string    `json:"provider"`
	Mode           string    `json:"mode"`
	Seed           uint64    `json:"seed"` // events copied from the parent, as the log counts them
	Tool           string    `json:"tool"`
	Call           Fact      `json:"call"`           // the parent's tool call, with its seq there
	ParentSandbox  Fact      `json:"parent_sandbox"` // what the parent's own log had set when it called
	Sandbox        Fact      `json:"sandbox"`        // captured by the delegation
	Approvals      Fact      `json:"approvals"`      // pinned by the delegation
	Told           Told      `json:"told"`           // what the child's model was told
	Effective      Effective `json:"effective"`      // what childlog counts
}

// Told is what the text for the model says of the policy: inferred at best.
type Told struct {
	Sandbox   Fact `json:"sandbox"`
	Approvals Fact `json:"approvals"`
}

// Effective is the fold of the imported log.
type Effective struct {
	Sandbox   string `json:"sandbox"`
	Approvals string `json:"approvals"`
}

// Drift is a difference between the policy at delegation and the one at work.
type Drift struct {
	Session      uuid.UUID `json:"session"`
	External     string    `json:"external"`
	Field        string    `json:"field"` // sandbox, approvals
	AtDelegation Fact      `json:"at_delegation"`
	AtWork       Fact      `json:"at_work"`
	Counts       string    `json:"counts"` // what childlog counts
	Detail       string    `json:"detail"`
}
