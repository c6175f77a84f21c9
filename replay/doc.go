// Package replay rebuilds from a session's log what the session may do and
// where it stands, and writes the events that move it on.
//
// # The fold
//
// Fold turns the policy-bearing events of one log into an [Effective] policy,
// with the event that set each field. It is a pure function of the events up
// to a seq: no clock, no environment, no configuration and no other session
// goes in, so the same log gives the same policy in every process, for ever.
// [Policy] reads those events by their links, at a cost that does not grow
// with the log; a full replay folds everything and must agree.
//
// A child's authority is what its receipt granted, met with every narrowing
// since. A root's is what its profile states; on top come the operator rules
// bound to the store, as they are at each decision ([Subject]). They live in a
// session of the store's own ([Rules], [SetRules]) and are captured into every
// receipt, so for a child nothing outside its log counts.
//
// # Cold resume
//
// [Resume] rebuilds a session in a process that knows nothing of it. It
// appends nothing: three resumes leave the log, its digest and its last
// activity as they were. What belongs into the log when a session goes on
// (a new epoch, the end of what a crash left open) is written by [Activate].
//
// Resume refuses rather than guesses: damage, a gap, an event of a closed
// family that this version does not know, a missing or repeated delegation
// event. There is no default to fall back to.
//
// # Deciding
//
// An [Authorizer] compiles a session's policy once and answers its calls;
// [Authorizer.Record] decides inside the commit that writes the call and the
// decision, so a record never rests on a policy that had moved. A policy that
// can't be read denies every call. [DecideAt] answers as of a seq, for audits.
//
// # Asking
//
// [Ask] puts one call to a person or a program and records question and
// decision under one id. A child is never asked about: its pin decides. What
// is allowed is this call, with these bytes as its arguments, once, in this
// turn and under this policy; [Once] says whether that still holds, and
// [OnceIn] says it inside the commit that records the call as allowed. The
// writer holds every native log to these rules, so that no other way of
// writing makes a grant. One thing rests on the derived row alone: whether a
// grant was used already.
//
// Choices where the contract leaves one. A question whose answerer failed is
// unavailable at once: the next answerer must not allow what this one might
// have rejected. An allowance that comes after a change of the policy is
// recorded as cancelled, so that nobody is told of a grant that is void. An
// escalation beyond the bound of a narrowed root is rejected and nobody is
// asked: one call is no exception to a narrowing.
//
// # Explaining
//
// [Explain] names the one rule and event behind a field and walks from the root
// down: what each session held when it delegated, and what it could hand on.
// [ExplainCall] does so for the field that decided a call, and finds the session
// in which the reason stands first: each ancestor is asked, with what it could
// hand on in the place of what it may do itself. [ExplainEvent] tells what one
// event did. A recorded decision is explained by its record and is not decided
// again: an escalation is no part of the record. A classifier's verdict is, by
// name, level and code: an allowance under a shell that is not full rests on it.
//
// # What a harness calls
//
//	Policy, Resume, Diff                   read
//	Explain, ExplainCall, ExplainEvent     and understand
//	NewAuthorizer, DecideAt, Decisions     may it do this, and what was decided
//	Activate, End, Switch, Narrow          policy and residency
//	Rules, SetRules                        what the store's operator denies
//	Ask, Once                              approval of one call, once
//	Send, Claim, Interrupt                 messages to a child
//	Settle, Close, Notices, Consume        the end of a run
//
// All functions may be called concurrently. Those that write commit one
// atomic unit whose checks run inside the commit.
package replay
