package manifest

import (
	"fmt"

	"github.com/google/uuid"

	"childlog/cmd/childlog/internal/strict"
	"childlog/eventlog"
	"childlog/policy"
)

// Request is what one delegation states: the wish, which policy derives a child
// from, and what else makes the child.
type Request struct {
	// Request is the wish. Its Provider is the name in RunBy.
	policy.Request

	ID        uuid.UUID         // uuid.Nil: the store makes one
	Key       string            // idempotency key, unique for the parent; "": none
	Label     string            // content, for people
	Prompt    string            // content, for the child
	Mode      string            // eventlog.ModeOneShot or ModeContinuable; "": not stated
	Fork      uint64            // copy the parent's conversation up to this seq of its log; 0: no seed
	Workspace string            // absolute, as given; "": the parent's
	ToolCall  string            // the parent's call that delegates; a code
	RunBy     eventlog.Provider // zero: in this process

	Palette  *policy.Palette // the child's tools; nil: not stated
	Foreign  bool            // the palette cannot be inspected, and is declared so
	Lockdown []string        // the deployment's block-edit tools beside the built-in ones; nil: not stated
}

// ParseRequest reads a request. What the gate of the merge contract refuses
// whoever the parent is, is refused here.
func ParseRequest(doc []byte) (*Request, error) {
	v, err := strict.Parse(doc, MaxDocument)
	if err != nil {
		return nil, err
	}
	r := &Request{}
	var at places
	if err := v.Object(r.fields(&at)...); err != nil {
		return nil, err
	}
	r.Provider = r.RunBy.Name
	if _, err := (policy.Contract{Policy: r.MergePolicy, WriteScope: r.WriteScope}).Gate(policy.NameSet{}); err != nil {
		return nil, scopeAt(v, at.scope, r.Wish).Wrong(err)
	}
	if r.Delegable == nil {
		if n := len(r.ExplicitGrants); n > 0 {
			return nil, at.terms.Bad("want none without a delegable half to grant, got %d", n)
		}
		return r, nil
	}
	// What is handed on needs no contract of its own, but a worker that only
	// reads has no workers that write.
	c := policy.Contract{WriteScope: r.Delegable.WriteScope}
	if r.MergePolicy == policy.MergeReadOnly {
		c.Policy = r.MergePolicy
	}
	if _, err := c.Gate(policy.NameSet{}); err != nil {
		return nil, scopeAt(at.delegable, at.handOn, *r.Delegable).Wrong(err)
	}
	return r, nil
}

// places are where those keys stand that are judged together with others.
type places struct{ scope, delegable, handOn, terms strict.Value }

// fields are the keys of a request: those of a wish beside its own.
func (r *Request) fields(at *places) []strict.Field {
	return append(noting(wishFields(&r.Wish, 0), "write_scope", &at.scope),
		optional("wall_ms", &r.WallMS, integer[int64](1, policy.MaxNumber)),
		field("role", &r.Role, role),
		field("model", &r.Model, choice),
		field("effort", &r.Effort, choice),
		optional("background", &r.Background, flag),
		field("merge_policy", &r.MergePolicy, word(policy.MergeReadOnly, policy.MergeTransactionalWrite)),
		noted(optional("delegable", &r.Delegable, func(v strict.Value) (w policy.Wish, err error) {
			err = v.Object(noting(wishFields(&w, 0), "write_scope", &at.handOn)...)
			return w, err
		}), &at.delegable),
		noted(field("explicit_grants", &r.ExplicitGrants, explicitGrants), &at.terms),
		field("id", &r.ID, id),
		field("key", &r.Key, checked(notEmpty)),
		field("label", &r.Label, text),
		field("prompt", &r.Prompt, text),
		field("mode", &r.Mode, word(eventlog.ModeOneShot, eventlog.ModeContinuable)),
		field("fork", &r.Fork, integer[uint64](1, policy.MaxNumber)),
		field("workspace", &r.Workspace, checked(absolute)),
		field("tool_call", &r.ToolCall, code),
		field("provider", &r.RunBy, provider),
		optional("palette", &r.Palette, palette),
		field("foreign_palette", &r.Foreign, flag),
		field("lockdown", &r.Lockdown, listOf(name)),
	)
}

var role = checked(func(s string) error {
	_, err := policy.ParseRole(s)
	return err
})

func id(v strict.Value) (uuid.UUID, error) {
	s, err := v.Text()
	if err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id == uuid.Nil {
		return uuid.Nil, v.Bad("got %.60q, want a UUID", s)
	}
	return id, nil
}

func notEmpty(s string) error {
	if s == "" {
		return fmt.Errorf("%w: got an empty text, want one that says something", eventlog.ErrInvalid)
	}
	return nil
}

// absolute refuses a directory that would depend on where the reader runs.
func absolute(dir string) error {
	if err := notEmpty(dir); err != nil {
		return err
	}
	_, err := policy.NewWorkspace(dir, "")
	return err
}

// provider reads what runs the child. in_process is true unless stated.
func provider(v strict.Value) (eventlog.Provider, error) {
	p := eventlog.Provider{InProcess: true}
	err := v.Object(field("name", &p.Name, name), field("in_process", &p.InProcess, flag))
	if err == nil {
		err = missing(v, "name", p.Name != "")
	}
	return p, err
}

func palette(v strict.Value) (policy.Palette, error) {
	entries, err := listOf(func(v strict.Value) (e policy.PaletteEntry, err error) {
		err = v.Object(
			field("name", &e.Name, name),
			field("class", &e.Class, word(policy.ClassRead, policy.ClassEdit, policy.ClassShell, policy.ClassNetwork, policy.ClassDelegate, policy.ClassOpaque)),
		)
		if err == nil && (e.Name == "" || e.Class == "") {
			err = missing(v, "name and class", false)
		}
		return e, err
	})(v)
	if err != nil {
		return policy.Palette{}, err
	}
	p, err := policy.NewPalette(entries...)
	return p, v.Wrong(err)
}
