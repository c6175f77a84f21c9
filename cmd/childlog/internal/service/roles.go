package service

import (
	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/tokens"
)

// What each role may do. An operation is open to a role if the level of the
// request (package harness, level.go: one line for each) is at most that of the
// role; what has no line there does not compile, and a role that is not listed
// here may do nothing.
//
//	auditor   reads: policies, explanations, logs, follow, metrics. A check that
//	          is not recorded is a question, and so is resume, which appends
//	          nothing
//	harness   also writes what a harness writes: roots, delegations, events,
//	          records of decisions, what a session's parent or its activation may
//	          do. Creating a root is a harness call, since a harness begins the
//	          sessions that people start; what a root may do is bounded by the
//	          operator rules
//	operator  also narrows, closes, sets operator rules, answers questions, and
//	          acts as an operator on any session. The peers of the Unix socket are operators: they
//	          could as well read and write the files
//
// Nothing over the wire redacts, purges, holds, exports, backs up, or changes
// tokens: those are commands on the machine.
func levelOf(r tokens.Role) (level harness.Level, known bool) {
	switch r {
	case tokens.Auditor:
		return harness.Reads, true
	case tokens.Harness:
		return harness.Works, true
	case tokens.Operator:
		return harness.Operates, true
	}
	return 0, false
}

// may reports whether a role suffices for a level.
func may(r tokens.Role, need harness.Level) bool {
	level, known := levelOf(r)
	return known && need <= level
}

// readsMetrics are the roles that may read the metrics, which tell how many
// sessions there are and what is denied.
func readsMetrics(r tokens.Role) bool { return r == tokens.Auditor || r == tokens.Operator }
