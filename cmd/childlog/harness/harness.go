package harness

import (
	"context"
	"iter"

	"childlog/cmd/childlog/wire"
)

// Operator is the caller of a request that an operator makes, where a session
// would be named by its parent.
const Operator = "operator"

// Harness is everything that a program which runs agents does with a store. It
// is implemented by [Store], which holds the store itself, and by [Client],
// which asks whoever holds it; a program switches between them by one line.
//
// All methods may be called by any number of goroutines. What they return is
// the caller's own. An error wraps one of the sentinels of package eventlog
// (errors.Is), from either implementation; see [Failed].
//
// A method that writes is one atomic commit: on any error but ErrOutcomeUnknown
// and a context that ended, nothing was written. After those two it may have
// been: repeat the same request, with the same key or the same ids, and the
// answer is the original one. What has neither is looked at before it is
// repeated ([Harness.Show], [Harness.Log]).
//
// A session is named by its id, by a unique prefix of it (four digits or more),
// or by another system's id as SYSTEM:ID. Prefixes are for people: a program
// that keeps one may find it ambiguous later.
type Harness interface {
	// Root begins a session that nobody delegated. A given id makes a retry
	// safe: the second call finds it in use, and fails with exists.
	Root(ctx context.Context, r RootRequest) (wire.Created, error)
	// Delegate captures what a parent may do now and makes a child whose log
	// begins with that. Under a key a retry gets the child that is there, and is
	// told so (existing); another request under the key is a conflict.
	Delegate(ctx context.Context, r DelegateRequest) (wire.Delegated, error)

	// Append writes a batch of events of open families, all or nothing. A retry
	// under the same key, or with the same event ids at the same place or among
	// the session's last 256 events, gets the original result, and is told so
	// (replayed).
	Append(ctx context.Context, r AppendRequest) (wire.Written, error)
	// Switch changes what a session sets for itself, within its bound.
	Switch(ctx context.Context, r SwitchRequest) (wire.Switched, error)
	// Narrow lowers what sessions may do, for ever, in one commit.
	Narrow(ctx context.Context, r NarrowRequest) (Items[wire.Narrowed], error)

	// Send queues a message for a session.
	Send(ctx context.Context, r SendRequest) (wire.Sent, error)
	// Interrupt records a request to stop the current turn.
	Interrupt(ctx context.Context, r InterruptRequest) (wire.Written, error)
	// Inbox lists the messages that are pending, and writes nothing.
	Inbox(ctx context.Context, r SessionRequest) (Items[wire.Message], error)
	// Claim takes them, each once, for the activation of the epoch.
	Claim(ctx context.Context, r ClaimRequest) (Items[wire.Message], error)

	// Activate takes a session up for work under the next epoch, which fences the
	// appends of the one before, and first closes what a crash left open. It
	// claims the messages that are pending.
	Activate(ctx context.Context, r ActivateRequest) (wire.Activated, error)
	// End lets go of a session without settling it.
	End(ctx context.Context, r EndRequest) (wire.Written, error)
	// Settle records how a run ended. The parent has a notice pending then.
	Settle(ctx context.Context, r SettleRequest) (wire.Written, error)
	// CloseSession ends a session for good. Only an operator does that.
	CloseSession(ctx context.Context, r CloseRequest) (wire.Written, error)
	// Notices lists which children settled, and writes nothing.
	Notices(ctx context.Context, r SessionRequest) (Items[wire.Notice], error)
	// Consume takes the notices of one child, each once.
	Consume(ctx context.Context, r ConsumeRequest) (wire.Consumed, error)

	// Policy computes what a session may do, from its log alone.
	Policy(ctx context.Context, r PolicyRequest) (wire.Policy, error)
	// Resume rebuilds a session for a process that knows nothing of it, and
	// appends nothing.
	Resume(ctx context.Context, r ResumeRequest) (wire.Resumption, error)
	// Check decides one tool call. A denial is an answer and no error: look at
	// the verdict. With record the call and its decision are appended in one
	// commit, on the policy that is in force in it; an error of a call with
	// record is no permission, whatever came before it. A call that is denied
	// because the session records nothing any more has recorded null.
	Check(ctx context.Context, r CheckRequest) (wire.Judgement, error)
	// CheckBatch decides many calls of a session as Check decides one, in their
	// order, and answers each in its place. Every call is decided, and recorded, by
	// itself: evaluated_seq says on which policy. A call that can't be decided, such
	// as one whose id stands for another call, has an error in its place; what is
	// no call at all makes the request invalid before any is decided. Where the store
	// fails after the first was recorded, those that were not reached have the error.
	CheckBatch(ctx context.Context, r CheckBatchRequest) (Items[wire.Checked], error)
	// Ask records the question whether a call may be made once, and what decides
	// it: the pin of a child rejects before anybody is asked, and so do a root
	// whose approvals are never and a session without an open turn. Nothing waits.
	// Else the question waits for its answer, from anywhere: ask again, with the
	// same call, ask id and question, to see whether it came.
	Ask(ctx context.Context, r AskRequest) (wire.Ruling, error)
	// Asks lists the questions that wait, oldest first.
	Asks(ctx context.Context, r AsksRequest) (Items[wire.Question], error)
	// Answer allows or rejects the one call that was asked about. One question
	// has one decision; an answer that comes too late is recorded as cancelled.
	Answer(ctx context.Context, r AnswerRequest) (wire.Ruling, error)

	// ExplainField says why a field of a policy has its value.
	ExplainField(ctx context.Context, r ExplainFieldRequest) (wire.Explanation, error)
	// ExplainAll lists every field with the event that set it.
	ExplainAll(ctx context.Context, r PolicyRequest) (Items[wire.FieldLine], error)
	// ExplainCall explains the decision on a call, and records nothing.
	ExplainCall(ctx context.Context, r ExplainCallRequest) (wire.CallExplanation, error)
	// ExplainEvent tells what one event did.
	ExplainEvent(ctx context.Context, r ExplainEventRequest) (wire.EventExplanation, error)
	// Diff compares a policy as of two seqs.
	Diff(ctx context.Context, r DiffRequest) (wire.Diff, error)

	// Show is everything small about one session.
	Show(ctx context.Context, r SessionRequest) (wire.Detail, error)
	// List lists sessions in the order of their creation, a page at a time.
	List(ctx context.Context, r ListRequest) (Items[wire.Listed], error)
	// Tree lists the sessions as trees of delegations, in preorder.
	Tree(ctx context.Context, r TreeRequest) (Items[wire.Node], error)
	// Log reads a page of a session's events. What can't be read is a hole of
	// the page, never left out.
	Log(ctx context.Context, r LogRequest) (LogPage, error)
	// Search finds events in all logs, or in those that are picked.
	Search(ctx context.Context, r SearchRequest) (Found, error)
	// Head is where to begin a follow of what is new.
	Head(ctx context.Context, r HeadRequest) (Head, error)
	// Follow yields the events of a session, or of the whole store, in order,
	// and then each new one once it is durable, until ctx ends or the caller
	// stops. The last pair of a follow that failed holds the error; one that was
	// ended by ctx yields ctx's. It holds nothing between two events, so a slow
	// caller delays nobody.
	Follow(ctx context.Context, r FollowRequest) iter.Seq2[wire.Followed, error]

	// Rules are the operator rules that the store has now.
	Rules(ctx context.Context, r NoRequest) (wire.Rules, error)
	// SetRules replaces them. Only an operator does that.
	SetRules(ctx context.Context, r SetRulesRequest) (wire.RulesSet, error)
	// Stats counts what the store holds, and what it takes on disk.
	Stats(ctx context.Context, r StatsRequest) (wire.StoreStats, error)
	// Verify reads everything and compares everything with everything, and writes
	// nothing. Damage is an answer and no error: look at ok. It takes the longer
	// the larger the store is; the end of ctx ends it. A service does one at a time
	// and refuses more as busy.
	Verify(ctx context.Context, r VerifyRequest) (wire.Verified, error)

	// Close lets go of the store or of the connections to it. Calls after it
	// fail with ErrStoreClosed; those under way end with an error or with their
	// outcome.
	Close() error
}
