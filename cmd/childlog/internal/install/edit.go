package install

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"childlog/eventlog"
)

// group and handler are what is written, with their members in this order.
type group struct {
	Matcher string    `json:"matcher,omitzero"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
	Failure string `json:"onFailure,omitzero"`
}

// onFailure and its value tell Claude Code that a hook which can't start, is
// killed or is late is no leave.
const onFailure, failureBlocks = "onFailure", "block"

// wanted is the group of an event, and the handler in it.
func wanted(h *Harness, e event, c Command) (inGroup, alone jsontext.Value) {
	one := handler{Type: "command", Command: c.line(h), Timeout: e.seconds}
	if e.closes && !c.Observe {
		one.Failure = failureBlocks
	}
	return encode(group{Matcher: e.matcher, Hooks: []handler{one}}), encode(one)
}

// encode writes strings and numbers, which can't fail. A path that is not UTF-8 is
// refused before (see [Install]).
func encode(v any) jsontext.Value {
	b, _ := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	return b
}

// ours lists the hooks that install wrote, with the command of each.
func ours(h *Harness, all []hook, exe string) (out []hook, commands []Command) {
	for _, k := range all {
		if c, ok := parseCommand(h, k.command, exe); ok {
			out, commands = append(out, k), append(commands, c)
		}
	}
	return out, commands
}

// errForeign is a hook that runs a guard and is not ours: what a shell makes of
// it (`|| true`) can take the exit code away that blocks.
var errForeign = errors.New("runs a guard in a way that install did not write")

// understand reads a file that hooks are to be put into: one that the harness
// reads as well, and in which every hook has the shape of one. Errors:
// ErrInvalid with the line, errForeign too where a guard is run by something else.
func understand(h *Harness, src []byte, exe string) (*document, []hook, error) {
	if err := strict(h, src); err != nil {
		return nil, nil, err
	}
	d, err := parse(src)
	if err != nil {
		return nil, nil, err
	}
	if err := d.rootAllowed(h); err != nil {
		return nil, nil, err
	}
	all, err := d.hooks(true)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range all {
		if _, ok := parseCommand(h, k.command, exe); !ok && mentions(k.command) {
			return nil, nil, fmt.Errorf("%w: line %d: hooks.%s %w: every call would be recorded twice; take it out first", eventlog.ErrInvalid, k.line, k.event, errForeign)
		}
	}
	return d, all, nil
}

// empty is what a file begins with that is not there, or holds nothing.
const empty = "{}\n"

func blank(src []byte) bool { return len(bytes.Trim(src, " \t\r\n")) == 0 }

// put gives a settings file the guard's hooks: those that are there already are
// brought up to date where they stand, others are added. Errors: ErrInvalid.
func put(h *Harness, src []byte, c Command, exe string) ([]byte, error) {
	if blank(src) {
		src = []byte(empty)
	}
	for {
		d, all, err := understand(h, src, exe)
		if err != nil {
			return nil, err
		}
		next, changed := d.renew(h, all, c, exe)
		if !changed {
			break
		}
		src = next
	}
	for _, e := range h.events() {
		d, all, err := understand(h, src, exe)
		if err != nil {
			return nil, err
		}
		if mine, _ := ours(h, all, exe); !has(mine, e.name) {
			src = d.add(h, e, c)
		}
	}
	return src, nil
}

func has(list []hook, event string) bool {
	for _, k := range list {
		if k.event == event {
			return true
		}
	}
	return false
}

// renew brings the first hook of ours that is not as it should be up to date, or
// takes it out: one for an event that is not ours any more, a second one for the
// same event, one under somebody's matcher, which would miss calls.
func (d *document) renew(h *Harness, all []hook, c Command, exe string) ([]byte, bool) {
	mine, _ := ours(h, all, exe)
	seen := map[string]bool{}
	for i := range mine {
		k := &mine[i]
		e, ok := h.event(k.event)
		if !ok || seen[k.event] {
			return d.drop(k), true
		}
		seen[k.event] = true
		g, hd := wanted(h, e, c)
		switch {
		case k.alone() && d.same(k.groupValue(), g), !k.alone() && k.matchesAll() && d.same(k.value(), hd):
		case k.alone():
			return d.replace(k.groupValue(), g), true
		case k.matchesAll():
			return d.replace(k.value(), hd), true
		default:
			return d.drop(k), true
		}
	}
	return nil, false
}

// drop takes a hook out, with the group if nothing else is in it.
func (d *document) drop(k *hook) []byte {
	if k.alone() {
		return d.remove(k.list, k.group)
	}
	return d.remove(k.inGroup, k.handler)
}

// add puts a group at the end of an event's list.
func (d *document) add(h *Harness, e event, c Command) []byte {
	g, _ := wanted(h, e, c)
	list := func(indent string) string { return d.named(e.name, d.nested("[", d.inline(g), "]", indent)) }
	hooks := member(d.root.Value.(*hujson.Object), "hooks")
	if hooks == nil {
		return d.insert(&d.root, func(indent string) string {
			return d.named("hooks", d.nested("{", list(indent+d.unit()), "}", indent))
		})
	}
	m := member(hooks.Value.Value.(*hujson.Object), e.name)
	if m == nil {
		return d.insert(&hooks.Value, list)
	}
	return d.insert(&m.Value, func(string) string { return d.inline(g) })
}

// take takes our hooks out of a file, which may hold comments, and whatever it
// was emptied by that: lists and objects that were there before, in original,
// stay. It reports how many there were.
func take(h *Harness, src, original []byte, exe string) (out []byte, n int, err error) {
	if blank(src) {
		return src, 0, nil
	}
	touched := map[string]bool{}
	for {
		d, err := parse(src)
		if err != nil {
			return nil, 0, err
		}
		all, _ := d.hooks(false)
		mine, _ := ours(h, all, exe)
		if len(mine) == 0 {
			break
		}
		k := &mine[len(mine)-1]
		touched[k.event] = true
		src, n = d.drop(k), n+1
	}
	if n == 0 {
		return src, 0, nil
	}
	if original, _, err = take(h, original, nil, exe); err != nil {
		original = nil
	}
	before := shape(original)
	for {
		d, err := parse(src)
		if err != nil {
			return nil, 0, err
		}
		next, changed := d.tidy(touched, before)
		if !changed {
			return src, n, nil
		}
		src = next
	}
}

// shape says which lists of hooks a file has, "" standing for hooks itself.
func shape(src []byte) map[string]bool {
	out := map[string]bool{}
	d, err := parse(src)
	if err != nil {
		return out
	}
	if m := member(d.root.Value.(*hujson.Object), "hooks"); m != nil {
		out[""] = true
		if events, ok := m.Value.Value.(*hujson.Object); ok {
			for i := range events.Members {
				out[nameOf(&events.Members[i])] = true
			}
		}
	}
	return out
}

// tidy removes one list that was emptied, or hooks itself.
func (d *document) tidy(touched, before map[string]bool) ([]byte, bool) {
	root := d.root.Value.(*hujson.Object)
	for i := range root.Members {
		hooks := &root.Members[i]
		events, ok := hooks.Value.Value.(*hujson.Object)
		if nameOf(hooks) != "hooks" || !ok {
			continue
		}
		for j := range events.Members {
			m := &events.Members[j]
			if name := nameOf(m); touched[name] && !before[name] && d.bare(&m.Value) {
				return d.remove(&hooks.Value, j), true
			}
		}
		if !before[""] && d.bare(&hooks.Value) {
			return d.remove(&d.root, i), true
		}
	}
	return nil, false
}

// bare reports whether nothing at all is in an array or object, no comment either.
func (d *document) bare(v *hujson.Value) bool {
	switch v.Value.(type) {
	case *hujson.Array, *hujson.Object:
		return blank(d.body[v.StartOffset+1 : v.EndOffset-1])
	}
	return false
}
