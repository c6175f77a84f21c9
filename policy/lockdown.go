package policy

import "slices"

// The tools that edit blocks of an agent's own prompt. A child that holds one
// could rewrite the instructions it was delegated with.
const (
	ToolPromptBlockEdit    = "prompt_block_edit"
	ToolPromptBlockAppend  = "prompt_block_append"
	ToolPromptBlockReplace = "prompt_block_replace"
	ToolPromptBlockDelete  = "prompt_block_delete"
)

// LockdownTools returns the tools that no child holds in any deployment, as a
// new slice.
func LockdownTools() []string {
	return []string{ToolPromptBlockEdit, ToolPromptBlockAppend, ToolPromptBlockReplace, ToolPromptBlockDelete}
}

// Lockdown is the set of tools that no child holds, whatever its grant, its
// tool list or its sandbox: those of [LockdownTools] and what the deployment
// adds. The zero value is the built-in ones alone; none locks less. Names are
// whole: a harness that offers such a tool under another name, or with the
// prefix of a server before it, has to add that name. It is an immutable value.
type Lockdown struct {
	added []string // lowered, sorted, without duplicates and built-in names
}

// NewLockdown returns the built-in tools and the given ones, which may repeat
// them: what [Lockdown.Names] returned makes the same set again. Wrapped
// [ErrInvalid] for a name that [CheckToolName] refuses, or more than 1,024.
func NewLockdown(names ...string) (Lockdown, error) {
	if len(names) > maxNames {
		return Lockdown{}, invalid("lockdown: got %d tools, want at most %d", len(names), maxNames)
	}
	var added []string
	for _, n := range names {
		if err := checkName("lockdown", n); err != nil {
			return Lockdown{}, err
		}
		if n = lowerASCII(n); !slices.Contains(LockdownTools(), n) {
			added = append(added, n)
		}
	}
	slices.Sort(added)
	return Lockdown{added: slices.Compact(added)}, nil
}

// Names returns the locked tools with A to Z lowered, in byte order, for the
// receipt; never nil, and never without the built-in ones.
func (l Lockdown) Names() []string {
	names := append(LockdownTools(), l.added...)
	slices.Sort(names)
	return names
}

// Locks reports whether a child may not hold the tool. It compares with A to Z
// lowered. What [CheckToolName] refuses is locked too: an invisible character
// or a letter of another alphabet makes the same word to whoever reads it, and
// no such tool can be called anyway.
func (l Lockdown) Locks(tool string) bool {
	if CheckToolName(tool) != nil {
		return true
	}
	name := lowerASCII(tool)
	_, added := slices.BinarySearch(l.added, name)
	return added || slices.Contains(LockdownTools(), name)
}
