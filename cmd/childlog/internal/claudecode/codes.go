package claudecode

// Codes of findings of this format.
const (
	codeNotTranscript = "not-a-transcript" // no line of the file's beginning is one of a transcript
	codeOtherAgent    = "other-agent"      // the lines name another agent than the file's name
	codeSidecar       = "sidecar"          // an agent's .meta.json that can't be read
	codeUnknownMode   = "unknown-mode"     // a permission mode that is not known
	codeBypass        = "bypass"           // nothing was asked any more
	codeUnsandboxed   = "unsandboxed"      // a call that asked to run outside of the sandbox
	codeModeRequested = "mode-requested"   // a call that asked for a permission mode for its agent
	codeCallInferred  = "call-inferred"    // the call that made a child, found by its prompt or its type
	codeCallUnclear   = "call-ambiguous"   // several calls could have made a child
	codeNoCall        = "call-missing"     // no call in the parent's log that could have made a child
	codeNoAgent       = "agent-missing"    // a call that made an agent whose log was not among the files
	codeNoEnd         = "launched-no-end"  // a call returned when its agent began, and no line says that it ended
	codeForkInferred  = "fork-inferred"    // which session was copied is not recorded
	codeUnlocated     = "copy-not-located" // the original of copied lines is not in the store
	codeTooMuchPolicy = "too-much-policy"  // policy events beyond what the report folds
	codeTooManyOpen   = "too-many-open"    // calls without a result
	codeTooManyCalls  = "too-many-calls"   // in one line
	codeTooManyLines  = "too-many-lines"   // repetitions are not recognized any more
	codeTooManyChains = "too-many-chains"  // sidechains in one file
)
