package harness

import (
	"strings"

	"childlog/cmd/childlog/internal/guard"
)

// Level says what kind of a caller a request needs. A service holds it against
// the role of whoever asks; the embedded store, which whoever opened it owns,
// does not.
type Level uint8

// The levels. Each includes those before it.
const (
	Reads    Level = iota // nothing is written
	Works                 // writes what a harness writes: of its sessions, as their parent, as their activation
	Operates              // acts as an operator
)

// String names the level as the role that has it.
func (l Level) String() string {
	switch l {
	case Reads:
		return "auditor"
	case Works:
		return "harness"
	}
	return "operator"
}

// Request is what a request of an operation says of itself.
type Request interface {
	// Level is the least that whoever makes this request has to be.
	Level() Level
}

// as is the level of a request that its caller makes as a parent or an operator.
func as(by string) Level {
	if by == Operator {
		return Operates
	}
	return Works
}

// under is the level of a request that an activation makes, and an operator
// where none is named.
func under(epoch uint64) Level {
	if epoch == 0 {
		return Operates
	}
	return Works
}

// Level of the requests.
func (NoRequest) Level() Level           { return Reads }
func (SessionRequest) Level() Level      { return Reads }
func (PolicyRequest) Level() Level       { return Reads }
func (ExplainFieldRequest) Level() Level { return Reads }
func (ExplainCallRequest) Level() Level  { return Reads }
func (ExplainEventRequest) Level() Level { return Reads }
func (DiffRequest) Level() Level         { return Reads }
func (ListRequest) Level() Level         { return Reads }
func (TreeRequest) Level() Level         { return Reads }
func (LogRequest) Level() Level          { return Reads }
func (SearchRequest) Level() Level       { return Reads }
func (FollowRequest) Level() Level       { return Reads }
func (HeadRequest) Level() Level         { return Reads }
func (StatsRequest) Level() Level        { return Reads }
func (AsksRequest) Level() Level         { return Reads }
func (VerifyRequest) Level() Level       { return Reads }
func (ResumeRequest) Level() Level       { return Reads } // whoever it is for, it appends nothing

func (DelegateRequest) Level() Level { return Works }
func (AppendRequest) Level() Level   { return Works }
func (AskRequest) Level() Level      { return Works }
func (ClaimRequest) Level() Level    { return Works }
func (EndRequest) Level() Level      { return Works }
func (ConsumeRequest) Level() Level  { return Works }

func (r SendRequest) Level() Level      { return as(r.By) }
func (r InterruptRequest) Level() Level { return as(r.By) }
func (r ActivateRequest) Level() Level  { return as(r.By) }
func (r SwitchRequest) Level() Level    { return under(r.Epoch) }
func (r SettleRequest) Level() Level    { return under(r.Epoch) }

func (CloseRequest) Level() Level    { return Operates }
func (AnswerRequest) Level() Level   { return Operates } // no harness allows its own calls
func (NarrowRequest) Level() Level   { return Operates }
func (SetRulesRequest) Level() Level { return Operates }

// Level of a root: one under the name by which a guard looks for a session's root
// says what that session may do, whatever profile the guard was installed with.
func (r RootRequest) Level() Level {
	system, _, _ := strings.Cut(r.External, ":")
	for _, h := range guard.Harnesses() {
		if system == h.System() {
			return Operates
		}
	}
	return Works
}

// Level of a check: a record is written, a question is not.
func (r CheckRequest) Level() Level      { return recording(r.Record) }
func (r CheckBatchRequest) Level() Level { return recording(r.Record) }

func recording(record bool) Level {
	if record {
		return Works
	}
	return Reads
}
