package drafts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/logwalk"
	"childlog/cmd/childlog/wire"
	"childlog/eventlog"
	"childlog/policy"
)

// DelegationDraft is the revision that [Receipts] follows.
const DelegationDraft = "draft-nelson-agent-delegation-receipts-05"

// receiptLine is one receipt. The body's members are sorted, as the draft's
// canonical serialization has them.
type receiptLine struct {
	Body     jsontext.Value `json:"body"`
	Childlog record         `json:"childlog"`
}

// errFound ends a walk that found what it was for.
var errFound = errors.New("found")

// Receipts writes the receipt of each session that was delegated to, one a line;
// a root has none. Errors: ErrNotFound, ErrCorrupt for a log or a receipt that
// can't be read, a canceled context, what w returns.
func Receipts(ctx context.Context, w io.Writer, s *eventlog.Store, sessions []uuid.UUID, o Options) error {
	for _, id := range sessions {
		err := logwalk.Each(ctx, s, id, o.Contents, func(ev *eventlog.Event) error {
			if ev.Type != eventlog.TypeDelegationGranted || ev.Inherited != nil {
				return nil
			}
			line, err := o.receipt(ev)
			if err == nil {
				_, err = w.Write(line)
			}
			if err != nil {
				return err
			}
			return errFound // a session has one
		}, broken(id))
		if err != nil && !errors.Is(err, errFound) {
			return err
		}
	}
	return nil
}

func (o *Options) receipt(ev *eventlog.Event) ([]byte, error) {
	g, err := eventlog.ParseGranted(ev)
	if err != nil {
		return nil, err
	}
	window := map[string]any{"notBefore": wire.Time(time.UnixMilli(int64(min(g.NotBefore, policy.MaxNumber))))}
	gone := []missing{
		{"signerPublicKey", "the person who authorizes has no key in childlog"},
		{"signature", "childlog signs log heads, not receipts"},
	}
	if until := wire.MilliTime(g.Granted.Own.Profile.Limits.DeadlineMS); until != nil {
		window["notAfter"] = *until
	} else {
		gone = append(gone, missing{"timeWindow.notAfter", "the delegation has no expiry"})
	}
	body := map[string]any{"version": "1", "scope": scopeOf(&g), "boundaries": boundaries(&g), "timeWindow": window}
	if text, why := o.instructions(ev); why == "" {
		sum := sha256.Sum256([]byte(text))
		body["operatorInstructions"], body["instructionHash"] = text, "sha256:"+hex.EncodeToString(sum[:])
	} else {
		gone = append(gone, missing{"operatorInstructions", why}, missing{"instructionHash", why})
	}
	canonical, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if o.Filter != nil { // before the id, which is that of the body as it is written
		if canonical, err = o.Filter.JSON(canonical, o.Counts); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(canonical)
	out := receiptLine{Body: append([]byte(`{"delegationId":"sha256:`+hex.EncodeToString(sum[:])+`",`), canonical[1:]...)}
	if out.Childlog, err = o.record(DelegationDraft, ev, gone); err != nil {
		return nil, err
	}
	return o.line(out)
}

// scopeOf lists what is permitted.
func scopeOf(g *eventlog.Granted) map[string]any {
	own := g.Granted.Own
	reads, writes, deletes := []string{}, []string{}, []string{}
	if own.Grant.Files == policy.FilesRead || own.Grant.Files == policy.FilesWrite {
		reads = append(reads, "files:read")
	}
	if mayWrite(g) {
		places := []string{"files"}
		if own.Grant.Scope.Stated() {
			places = nil
			for _, p := range own.Grant.Scope.Entries() {
				places = append(places, "files/"+p)
			}
		}
		for _, p := range places {
			writes, deletes = append(writes, p+":write"), append(deletes, p+":delete")
		}
	}
	return map[string]any{"reads": reads, "writes": writes, "deletes": deletes, "executes": []string{}}
}

func mayWrite(g *eventlog.Granted) bool {
	own := g.Granted.Own
	return own.Grant.Files == policy.FilesWrite && own.Profile.Permissions.Write && !(g.Sandbox != nil && g.Sandbox.Canonical().Mode == policy.ReadOnly)
}

// boundaries lists what is prohibited. Asking is, for every child, so that the
// list is never empty.
func boundaries(g *eventlog.Granted) []string {
	own := g.Granted.Own
	out := []string{"approvals"}
	for _, e := range own.Profile.Denied.Entries() {
		out = append(out, "tool:"+e.Pattern)
	}
	for _, r := range g.Granted.Operator.Entries() {
		if r.Tool != "" {
			out = append(out, "tool:"+r.Tool)
		}
		if r.Path != "" {
			out = append(out, "path:"+r.Path)
		}
	}
	for name, is := range map[string]bool{
		"network": !own.Grant.Network || !own.Profile.Permissions.Network || g.Sandbox != nil && !g.Sandbox.Canonical().Network,
		"shell":   own.Grant.Shell != policy.GrantFull,
		"write":   !mayWrite(g),
		"desktop": !own.Grant.Desktop,
	} {
		if is {
			out = append(out, name)
		}
	}
	return sortedOnce(out)
}

// instructions is the prompt of the delegation, or why it is not given. One
// that the filter would change is left out, since the draft wants its hash, too,
// and the hash of a text with a secret in it lets a reader try guesses.
func (o *Options) instructions(ev *eventlog.Event) (text, why string) {
	var texts struct {
		Wish struct {
			Prompt string `json:"prompt"`
		} `json:"wish"`
	}
	switch {
	case !o.Contents:
		return "", "contents were not asked for"
	case ev.ContentErr != nil:
		return "", "the text is gone: " + ev.ContentErr.Error()
	case json.Unmarshal(ev.Content, &texts) != nil || texts.Wish.Prompt == "":
		return "", "the delegation has no prompt"
	case o.Filter != nil && o.Filter.String(texts.Wish.Prompt, nil) != texts.Wish.Prompt:
		return "", "the filter found something in the prompt"
	}
	return texts.Wish.Prompt, ""
}
