package policy

import (
	"slices"
	"strconv"
	"strings"
)

// The names of the fields of a half, as they stand in cuts and fingerprints.
// They are recorded in logs, so they are never renamed or reused. In a cut of
// the delegable half each has the prefix "delegable.".
const (
	FieldWrite        = "permissions.write"
	FieldNetwork      = "permissions.network"
	FieldShell        = "shell"
	FieldTools        = "tools"
	FieldProviders    = "providers"
	FieldCapabilities = "capabilities"
	FieldDeadline     = "deadline"
	FieldMaxSteps     = "max_steps"
	FieldMaxDepth     = "max_depth"
	FieldFiles        = "grant.files"
	FieldGrantShell   = "grant.shell"
	FieldGrantNetwork = "grant.network"
	FieldDesktop      = "grant.desktop"
	FieldSurface      = "grant.surface"
	FieldSpawn        = "grant.spawn"
	FieldMaxChildren  = "grant.max_children"
	FieldScope        = "grant.write_scope"
	FieldDenied       = "denied_tools"
)

// FieldLockdown stands for the deployment's block-edit tools, which a receipt
// records beside the halves.
const FieldLockdown = "lockdown"

const prefixDelegable = "delegable."

// field is one part of a half as text: one spelling for each worth, without
// spaces or line breaks outside of quotes.
type field struct {
	name, value string
	open        bool // states no limit, so that taking the parent's is inheriting and no cut
}

// fields renders the parts of a canonical half in a fixed order.
func (h Half) fields() []field {
	p, g := h.Profile, h.Grant
	flag := func(name string, on bool) field { return field{name: name, value: yesNo(on)} }
	return []field{
		flag(FieldWrite, p.Permissions.Write),
		flag(FieldNetwork, p.Permissions.Network),
		{name: FieldShell, value: p.Shell.String()},
		toolsField(p.Tools),
		namesField(FieldProviders, p.Providers),
		namesField(FieldCapabilities, p.Capabilities),
		limitField(FieldDeadline, p.Limits.DeadlineMS),
		limitField(FieldMaxSteps, p.Limits.MaxSteps),
		limitField(FieldMaxDepth, p.Limits.MaxDepth),
		{name: FieldFiles, value: g.Files.String()},
		{name: FieldGrantShell, value: g.Shell.String()},
		flag(FieldGrantNetwork, g.Network),
		flag(FieldDesktop, g.Desktop),
		{name: FieldSurface, value: g.Surface.String()},
		flag(FieldSpawn, g.Spawn),
		childrenField(g.MaxChildren),
		scopeField(g.Scope),
		{name: FieldDenied, value: list(p.Denied.patterns())},
	}
}

// FieldText returns a field of a half as cuts and fingerprints show it; false
// for a name that is no field.
func (h Half) FieldText(name string) (value string, ok bool) {
	for _, f := range h.Canonical().fields() {
		if f.name == name {
			return f.value, true
		}
	}
	return "", false
}

func toolsField(t Tools) field {
	if t.Inherits() {
		return field{FieldTools, string(t.State()), true}
	}
	names := t.List()
	slices.Sort(names)
	return field{name: FieldTools, value: list(names)}
}

func namesField(name string, s NameSet) field {
	if !s.Recorded() {
		return field{name, "any", true}
	}
	return field{name: name, value: list(s.names)}
}

func limitField[N int | int64 | uint64](name string, n N) field {
	if n == 0 {
		return field{name, "none", true}
	}
	if n < 0 { // of signed types alone, and then it fits
		return field{name: name, value: strconv.FormatInt(int64(n), 10)}
	}
	return field{name: name, value: strconv.FormatUint(uint64(n), 10)}
}

func childrenField(n *int) field {
	if n == nil {
		return field{FieldMaxChildren, "any", true}
	}
	return field{name: FieldMaxChildren, value: strconv.Itoa(*n)}
}

// scopeField quotes the entries: a path may hold anything but control
// characters, spaces and brackets included.
func scopeField(s Scope) field {
	if !s.Stated() {
		return field{FieldScope, "any", true}
	}
	entries := s.Entries()
	for i, e := range entries {
		entries[i] = strconv.QuoteToASCII(e)
	}
	return field{name: FieldScope, value: list(entries)}
}

func list(items []string) string { return "[" + strings.Join(items, " ") + "]" }

func yesNo(on bool) string {
	if on {
		return "yes"
	}
	return "no"
}

// line renders all fields of a canonical half.
func (h Half) line() string {
	var b strings.Builder
	for i, f := range h.fields() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.name + "=" + f.value)
	}
	return b.String()
}
