package harness

import (
	"context"

	"childlog/cmd/childlog/wire"
)

// Prefix is what the path of every operation begins with. The version changes
// with what an old client could not cope with; new keys of answers are none of
// that.
const Prefix = "/v1/"

// FollowPath is where events are followed: GET, with the keys of
// [FollowRequest] as the query, answered by server-sent events. The id of one is
// its cursor and its data a line of [wire.Followed]; Last-Event-ID is the cursor
// to go on from and beats the query. A comment is a heartbeat. An event of type
// error ends the stream with an [ErrorBody].
const FollowPath = Prefix + "follow"

// Operation is a method of [Harness] on its way over HTTP: POST to Path, with
// the request as the JSON body, answered by the answer as JSON (200), or by an
// [ErrorBody] with its [Status]. One way for all of them, because names of
// sessions hold any characters, and requests are documents.
type Operation[Q Request, A any] struct {
	Name   string // of the operation, snake_case, and of its path
	Writes bool   // it may write; else repeating it does no harm
	Short  string // what it does, for a list
	Do     func(Harness, context.Context, Q) (A, error)
}

// Path is where the operation is.
func (o Operation[Q, A]) Path() string { return Prefix + o.Name }

// Route is an operation without its types.
type Route struct {
	Name, Path, Short string
	Writes            bool
}

// Route returns the operation without its types.
func (o Operation[Q, A]) Route() Route { return Route{o.Name, o.Path(), o.Short, o.Writes} }

// The operations. A service registers each of them; the client calls them.
// Follow has no operation, see [FollowPath].
var (
	OpRoot      = Operation[RootRequest, wire.Created]{"root", true, "Begin a session that nobody delegated", Harness.Root}
	OpDelegate  = Operation[DelegateRequest, wire.Delegated]{"delegate", true, "Capture a parent's policy and make a child from it", Harness.Delegate}
	OpAppend    = Operation[AppendRequest, wire.Written]{"append", true, "Append a batch of events", Harness.Append}
	OpSwitch    = Operation[SwitchRequest, wire.Switched]{"switch", true, "Change what a session sets for itself", Harness.Switch}
	OpNarrow    = Operation[NarrowRequest, Items[wire.Narrowed]]{"narrow", true, "Lower what sessions may do, for ever", Harness.Narrow}
	OpSend      = Operation[SendRequest, wire.Sent]{"send", true, "Queue a message for a session", Harness.Send}
	OpInterrupt = Operation[InterruptRequest, wire.Written]{"interrupt", true, "Ask whatever runs a session to stop its turn", Harness.Interrupt}
	OpInbox     = Operation[SessionRequest, Items[wire.Message]]{"inbox", false, "List the messages that are pending", Harness.Inbox}
	OpClaim     = Operation[ClaimRequest, Items[wire.Message]]{"claim", true, "Take the messages that are pending, each once", Harness.Claim}
	OpActivate  = Operation[ActivateRequest, wire.Activated]{"activate", true, "Take a session up for work, under a new epoch", Harness.Activate}
	OpEnd       = Operation[EndRequest, wire.Written]{"end", true, "Let go of a session without settling it", Harness.End}
	OpSettle    = Operation[SettleRequest, wire.Written]{"settle", true, "Record how a run of a session ended", Harness.Settle}
	OpClose     = Operation[CloseRequest, wire.Written]{"close", true, "End a session for good", Harness.CloseSession}
	OpNotices   = Operation[SessionRequest, Items[wire.Notice]]{"notices", false, "List which children settled", Harness.Notices}
	OpConsume   = Operation[ConsumeRequest, wire.Consumed]{"consume", true, "Take the notices of a child, each once", Harness.Consume}

	OpPolicy       = Operation[PolicyRequest, wire.Policy]{"policy", false, "Show what a session may do, and which event says so", Harness.Policy}
	OpResume       = Operation[ResumeRequest, wire.Resumption]{"resume", false, "Rebuild a session from its log alone, and append nothing", Harness.Resume}
	OpCheck        = Operation[CheckRequest, wire.Judgement]{"check", true, "Decide a tool call, and record it if asked to", Harness.Check}
	OpCheckBatch   = Operation[CheckBatchRequest, Items[wire.Checked]]{"check_batch", true, "Decide many tool calls of one session", Harness.CheckBatch}
	OpAsk          = Operation[AskRequest, wire.Ruling]{"ask", true, "Ask whether one call may be made, once", Harness.Ask}
	OpAsks         = Operation[AsksRequest, Items[wire.Question]]{"asks", false, "List the questions that wait for an answer", Harness.Asks}
	OpAnswer       = Operation[AnswerRequest, wire.Ruling]{"answer", true, "Answer a question that a session asked", Harness.Answer}
	OpExplainField = Operation[ExplainFieldRequest, wire.Explanation]{"explain_field", false, "Say why a field of a policy has its value", Harness.ExplainField}
	OpExplainAll   = Operation[PolicyRequest, Items[wire.FieldLine]]{"explain_all", false, "List every field of a policy with its cause", Harness.ExplainAll}
	OpExplainCall  = Operation[ExplainCallRequest, wire.CallExplanation]{"explain_call", false, "Explain how a call is decided", Harness.ExplainCall}
	OpExplainEvent = Operation[ExplainEventRequest, wire.EventExplanation]{"explain_event", false, "Tell what one event did", Harness.ExplainEvent}
	OpDiff         = Operation[DiffRequest, wire.Diff]{"diff", false, "Compare a policy at two points of its log", Harness.Diff}

	OpShow     = Operation[SessionRequest, wire.Detail]{"show", false, "Show everything small about one session", Harness.Show}
	OpList     = Operation[ListRequest, Items[wire.Listed]]{"list", false, "List sessions", Harness.List}
	OpTree     = Operation[TreeRequest, Items[wire.Node]]{"tree", false, "Show who delegated to whom", Harness.Tree}
	OpLog      = Operation[LogRequest, LogPage]{"log", false, "Read a page of a session's events", Harness.Log}
	OpSearch   = Operation[SearchRequest, Found]{"search", false, "Find events in the logs", Harness.Search}
	OpHead     = Operation[HeadRequest, Head]{"head", false, "Say where to begin following what is new", Harness.Head}
	OpRules    = Operation[NoRequest, wire.Rules]{"rules", false, "Show the operator rules of the store", Harness.Rules}
	OpSetRules = Operation[SetRulesRequest, wire.RulesSet]{"set_rules", true, "Replace the operator rules of the store", Harness.SetRules}
	OpStats    = Operation[StatsRequest, wire.StoreStats]{"stats", false, "Count sessions, events and bytes", Harness.Stats}
	OpVerify   = Operation[VerifyRequest, wire.Verified]{"verify", false, "Check the whole store, or one session", Harness.Verify}
)

// Routes lists all operations, in the order of [Harness].
func Routes() []Route {
	return []Route{
		OpRoot.Route(), OpDelegate.Route(), OpAppend.Route(), OpSwitch.Route(), OpNarrow.Route(), OpSend.Route(), OpInterrupt.Route(),
		OpInbox.Route(), OpClaim.Route(), OpActivate.Route(), OpEnd.Route(), OpSettle.Route(), OpClose.Route(), OpNotices.Route(),
		OpConsume.Route(), OpPolicy.Route(), OpResume.Route(), OpCheck.Route(), OpCheckBatch.Route(), OpAsk.Route(), OpAsks.Route(), OpAnswer.Route(), OpExplainField.Route(), OpExplainAll.Route(),
		OpExplainCall.Route(), OpExplainEvent.Route(), OpDiff.Route(), OpShow.Route(), OpList.Route(), OpTree.Route(), OpLog.Route(),
		OpSearch.Route(), OpHead.Route(), OpRules.Route(), OpSetRules.Route(), OpStats.Route(), OpVerify.Route(),
	}
}
