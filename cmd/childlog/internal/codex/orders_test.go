package codex

import (
	"testing"

	"childlog/cmd/childlog/internal/importtest"
)

var format = importtest.Format{Import: Import, Store: newStore, System: System, ParentID: rootID,
	Parent: "testdata/tree/c-root.jsonl", Child: "testdata/tree/b-child.jsonl"}

func TestPurgedSession(t *testing.T) { format.Purged(t) }

func TestRedactedAndHeld(t *testing.T) { format.Ordered(t) }
