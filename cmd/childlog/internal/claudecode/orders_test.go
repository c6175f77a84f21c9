package claudecode

import (
	"testing"

	"childlog/cmd/childlog/internal/importtest"
)

var format = importtest.Format{Import: Import, Store: newStore, System: System, ParentID: garden,
	Parent: "testdata/tree/-srv-garden/" + garden + ".jsonl", Child: "testdata/tree/-srv-garden/" + garden + "/subagents/agent-b10000000000000b1.jsonl"}

func TestPurgedSession(t *testing.T) { format.Purged(t) }

func TestRedactedAndHeld(t *testing.T) { format.Ordered(t) }
