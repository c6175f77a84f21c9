package ops

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
)

func row(id, parent byte) eventlog.Row {
	r := eventlog.Row{Kind: eventlog.KindRoot, Session: uuid.UUID{id}}
	if parent != 0 {
		r.Kind, r.Parent = eventlog.KindChild, uuid.UUID{parent}
	}
	return r
}

// A forest shows every session once, whatever the links say: a parent that is
// not there, and links in a circle.
func TestForest(t *testing.T) {
	rows := []eventlog.Row{row(1, 0), row(2, 1), row(3, 9), row(4, 3), row(5, 6), row(6, 5), row(7, 1), row(8, 2)}
	type place struct {
		id     byte
		level  int
		orphan bool
	}
	places := func(nodes []Node) (out []place) {
		for _, n := range nodes {
			out = append(out, place{n.Row.Session[0], n.Level, n.Orphan})
		}
		return out
	}
	require.Equal(t, []place{{1, 0, false}, {2, 1, false}, {8, 2, false}, {7, 1, false}, {3, 0, true}, {4, 1, false}, {5, 0, true}, {6, 1, false}},
		places(forest(rows, uuid.Nil)))
	require.Equal(t, []place{{3, 0, false}, {4, 1, false}}, places(forest(rows, uuid.UUID{3})))
}
