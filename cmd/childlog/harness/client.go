package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"childlog/cmd/childlog/internal/trunk"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
)

// Client is a [Harness] on a store that another process serves, made by [Dial].
//
// A write whose answer did not arrive may have been committed: it is answered
// with ErrOutcomeUnknown, which a retry settles. So is one whose context ended
// while the service was at it; that error wraps the context's too. A request
// that was never sent, because nobody is there, is ErrStoreClosed. What only
// reads is sent again by itself where a kept connection turned out to be gone.
//
// On a store's socket the writes of all callers of a client share one connection
// (trunk.go), and when it is lost each of those that were sent is in doubt. So
// many callers do best with one client.
type Client struct {
	base, target, token string
	http                *http.Client
	trunk               *trunkLine      // for what writes; nil: HTTP carries it too
	ctx                 context.Context // ends with Close
	stop                context.CancelFunc
	most                int64 // bytes of an answer
}

var _ Harness = (*Client)(nil)

// Close implements [Harness]. Requests under way are given up.
func (c *Client) Close() error {
	c.stop()
	c.trunk.close()
	c.http.CloseIdleConnections()
	return nil
}

// Root implements [Harness], as do the methods below.
func (c *Client) Root(ctx context.Context, r RootRequest) (wire.Created, error) {
	return call(ctx, c, OpRoot, r)
}

func (c *Client) Delegate(ctx context.Context, r DelegateRequest) (wire.Delegated, error) {
	return call(ctx, c, OpDelegate, r)
}

func (c *Client) Append(ctx context.Context, r AppendRequest) (wire.Written, error) {
	return call(ctx, c, OpAppend, r)
}

func (c *Client) Switch(ctx context.Context, r SwitchRequest) (wire.Switched, error) {
	return call(ctx, c, OpSwitch, r)
}

func (c *Client) Narrow(ctx context.Context, r NarrowRequest) (Items[wire.Narrowed], error) {
	return call(ctx, c, OpNarrow, r)
}

func (c *Client) Send(ctx context.Context, r SendRequest) (wire.Sent, error) {
	return call(ctx, c, OpSend, r)
}

func (c *Client) Interrupt(ctx context.Context, r InterruptRequest) (wire.Written, error) {
	return call(ctx, c, OpInterrupt, r)
}

func (c *Client) Inbox(ctx context.Context, r SessionRequest) (Items[wire.Message], error) {
	return call(ctx, c, OpInbox, r)
}

func (c *Client) Claim(ctx context.Context, r ClaimRequest) (Items[wire.Message], error) {
	return call(ctx, c, OpClaim, r)
}

func (c *Client) Activate(ctx context.Context, r ActivateRequest) (wire.Activated, error) {
	return call(ctx, c, OpActivate, r)
}

func (c *Client) End(ctx context.Context, r EndRequest) (wire.Written, error) {
	return call(ctx, c, OpEnd, r)
}

func (c *Client) Settle(ctx context.Context, r SettleRequest) (wire.Written, error) {
	return call(ctx, c, OpSettle, r)
}

func (c *Client) CloseSession(ctx context.Context, r CloseRequest) (wire.Written, error) {
	return call(ctx, c, OpClose, r)
}

func (c *Client) Notices(ctx context.Context, r SessionRequest) (Items[wire.Notice], error) {
	return call(ctx, c, OpNotices, r)
}

func (c *Client) Consume(ctx context.Context, r ConsumeRequest) (wire.Consumed, error) {
	return call(ctx, c, OpConsume, r)
}

func (c *Client) Policy(ctx context.Context, r PolicyRequest) (wire.Policy, error) {
	return call(ctx, c, OpPolicy, r)
}

func (c *Client) Resume(ctx context.Context, r ResumeRequest) (wire.Resumption, error) {
	return call(ctx, c, OpResume, r)
}

func (c *Client) Check(ctx context.Context, r CheckRequest) (wire.Judgement, error) {
	return call(ctx, c, OpCheck, r)
}

func (c *Client) CheckBatch(ctx context.Context, r CheckBatchRequest) (Items[wire.Checked], error) {
	return call(ctx, c, OpCheckBatch, r)
}

func (c *Client) Ask(ctx context.Context, r AskRequest) (wire.Ruling, error) {
	return call(ctx, c, OpAsk, r)
}

func (c *Client) Asks(ctx context.Context, r AsksRequest) (Items[wire.Question], error) {
	return call(ctx, c, OpAsks, r)
}

func (c *Client) Answer(ctx context.Context, r AnswerRequest) (wire.Ruling, error) {
	return call(ctx, c, OpAnswer, r)
}

func (c *Client) ExplainField(ctx context.Context, r ExplainFieldRequest) (wire.Explanation, error) {
	return call(ctx, c, OpExplainField, r)
}

func (c *Client) ExplainAll(ctx context.Context, r PolicyRequest) (Items[wire.FieldLine], error) {
	return call(ctx, c, OpExplainAll, r)
}

func (c *Client) ExplainCall(ctx context.Context, r ExplainCallRequest) (wire.CallExplanation, error) {
	return call(ctx, c, OpExplainCall, r)
}

func (c *Client) ExplainEvent(ctx context.Context, r ExplainEventRequest) (wire.EventExplanation, error) {
	return call(ctx, c, OpExplainEvent, r)
}

func (c *Client) Diff(ctx context.Context, r DiffRequest) (wire.Diff, error) {
	return call(ctx, c, OpDiff, r)
}

func (c *Client) Show(ctx context.Context, r SessionRequest) (wire.Detail, error) {
	return call(ctx, c, OpShow, r)
}

func (c *Client) List(ctx context.Context, r ListRequest) (Items[wire.Listed], error) {
	return call(ctx, c, OpList, r)
}

func (c *Client) Tree(ctx context.Context, r TreeRequest) (Items[wire.Node], error) {
	return call(ctx, c, OpTree, r)
}

func (c *Client) Log(ctx context.Context, r LogRequest) (LogPage, error) {
	return call(ctx, c, OpLog, r)
}

func (c *Client) Search(ctx context.Context, r SearchRequest) (Found, error) {
	return call(ctx, c, OpSearch, r)
}

func (c *Client) Head(ctx context.Context, r HeadRequest) (Head, error) {
	return call(ctx, c, OpHead, r)
}

func (c *Client) Rules(ctx context.Context, r NoRequest) (wire.Rules, error) {
	return call(ctx, c, OpRules, r)
}

func (c *Client) SetRules(ctx context.Context, r SetRulesRequest) (wire.RulesSet, error) {
	return call(ctx, c, OpSetRules, r)
}

func (c *Client) Stats(ctx context.Context, r StatsRequest) (wire.StoreStats, error) {
	return call(ctx, c, OpStats, r)
}

func (c *Client) Verify(ctx context.Context, r VerifyRequest) (wire.Verified, error) {
	return call(ctx, c, OpVerify, r)
}

// call makes one request.
func call[Q Request, A any](ctx context.Context, c *Client, o Operation[Q, A], q Q) (A, error) {
	var answer, none A
	body, err := Encode(q)
	if err != nil {
		return none, err
	}
	if len(body) > MaxRequest {
		return none, &eventlog.TooLargeError{What: "request in bytes", Limit: MaxRequest, Size: uint64(len(body))}
	}
	x := exchange{c: c, name: o.Name, path: o.Path(), writes: o.Writes && q.Level() != Reads}
	text, err := x.do(ctx, body)
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(text, &answer, jsontext.AllowInvalidUTF8(true)); err != nil {
		return none, x.lost(fmt.Errorf("reading the answer of %s: %w", o.Path(), err))
	}
	return answer, nil
}

// exchange is one request and its answer.
type exchange struct {
	c      *Client
	name   string
	path   string
	writes bool
	sent   atomic.Bool // something of it may have reached the service
}

// do sends the request and reads the answer as a whole.
func (x *exchange) do(ctx context.Context, body []byte) ([]byte, error) {
	if err := x.c.ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: the client was closed", eventlog.ErrStoreClosed)
	}
	if x.writes && len(body) <= trunk.MaxRequest {
		if r, err := x.c.trunk.do(ctx, x, body); !errors.Is(err, errNoTrunk) {
			return x.settled(r, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.c.ctx, cancel)()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, x.c.base+x.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	x.c.sign(req)
	req.Header.Set("Content-Type", "application/json")
	if !x.writes {
		req.Header["Idempotency-Key"] = nil // net/http sends it again on another connection, and does not send the header
	}
	resp, err := x.c.http.Do(req)
	if err != nil {
		return nil, x.lost(err)
	}
	defer resp.Body.Close()
	text, err := x.c.readAll(resp)
	if err != nil {
		return nil, x.lost(err)
	}
	if resp.StatusCode == http.StatusOK {
		return text, nil
	}
	return nil, x.refused(resp.StatusCode, text)
}

// settled makes of a reply over a trunk what do returns.
func (x *exchange) settled(r reply, err error) ([]byte, error) {
	re := (*RemoteError)(nil)
	switch {
	case errors.As(err, &re): // there is no room for a connection
		return nil, re
	case err != nil:
		return nil, x.lost(err)
	case r.status != http.StatusOK:
		return nil, x.refused(r.status, r.text)
	}
	return r.text, nil
}

// sign says who asks.
func (c *Client) sign(req *http.Request) {
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// readAll reads an answer within its bound.
func (c *Client) readAll(resp *http.Response) ([]byte, error) {
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= c.most {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(resp.Body, c.most+1))
	if err == nil && int64(b.Len()) > c.most {
		err = &eventlog.TooLargeError{What: "answer in bytes", Limit: uint64(c.most), Size: uint64(b.Len())}
	}
	return b.Bytes(), err
}

// lost makes of a failed exchange what it means for the caller.
func (x *exchange) lost(err error) error {
	switch {
	case x.writes && x.sent.Load():
		return fmt.Errorf("%w: %s was sent and its answer did not arrive: %w", eventlog.ErrOutcomeUnknown, x.path, err)
	case x.c.ctx.Err() != nil:
		return fmt.Errorf("%w: the client was closed: %w", eventlog.ErrStoreClosed, err)
	case errors.Is(err, eventlog.ErrTooLarge):
		return err
	}
	return unreachable(x.c.target, err)
}

// refused reads the error of an answer. What is none of the service's, such as a
// proxy's, leaves a write in doubt.
func (x *exchange) refused(status int, text []byte) error {
	re, ok := remoteError(status, text)
	if x.writes && (!ok && status >= 500 || re.Code == codeInterrupted) {
		return fmt.Errorf("%w: %s was sent: %w", eventlog.ErrOutcomeUnknown, x.path, re)
	}
	return re
}

// codeInterrupted is the code of what was stopped on the way.
const codeInterrupted = "interrupted"

// remoteError reads the body of an error. It reports whether the body was one.
func remoteError(status int, text []byte) (*RemoteError, bool) {
	var body ErrorBody
	err := json.Unmarshal(text, &body, jsontext.AllowInvalidUTF8(true))
	if err == nil && body.Error.Code != "" {
		return &RemoteError{Status: status, ErrorDetail: body.Error}, true
	}
	return &RemoteError{Status: status, ErrorDetail: ErrorDetail{Code: "other", Message: fmt.Sprintf("got HTTP status %d %s, which no store answers with", status, http.StatusText(status)),
		Hint: "look whether the address is that of a childlog service"}}, false
}
