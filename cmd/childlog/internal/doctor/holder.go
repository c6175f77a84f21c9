package doctor

import (
	"context"
	"fmt"
	"time"

	"childlog/cmd/childlog/internal/access"
	"childlog/eventlog"
)

// holder asks whether a process serves the store.
func (r *report) holder(ctx context.Context) {
	_ = ctx
}

// held says who has the store to itself.
func (r *report) held(le *eventlog.LockedError) {
	who := "another process"
	if le.PID != 0 {
		who = fmt.Sprintf("process %d (%s) since %s", le.PID, le.Command, le.Since.UTC().Format(time.RFC3339))
	}
	r.add("holder", Warning, access.Abs(r.o.Place), "if a guard blocks because of it: childlog serve, or let that process serve the store", "%s holds the store and serves nobody: other commands wait for it", who)
}
