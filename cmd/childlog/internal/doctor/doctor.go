// Package doctor looks at a store and at everything around it that a guard needs,
// and says of each thing whether it is well and what to do if it is not. It
// changes nothing: the store is opened for reading, settings are read, and the
// harnesses are asked for nothing but their version.
//
// A problem is what makes a guard not run, or block everything, or what lets
// others read or change the logs. A warning is what may be meant.
package doctor

import (
	"context"
	"fmt"
	"os"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/install"
)

// Status is how a thing is.
type Status string

// Statuses, from the best to the worst.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Problem Status = "problem"
)

// Finding is what was found out about one thing.
type Finding struct {
	Check   string // which check, such as "store" or "hooks"
	Status  Status
	Subject string // what was looked at: a path, a harness, a variable
	Detail  string
	Fix     string // what to do; "" if nothing is to be done
}

// Options say what is looked at.
type Options struct {
	Place   access.Place
	Env     install.Env
	Environ []string // the whole environment, NAME=VALUE
	Exe     string   // this executable, as a hook names it
	Version string   // of childlog, one line

	GuardSeconds int // how long a guard takes at most before it blocks by itself

	// Which finds a program on the path and asks it for its version. "" and no
	// error: it is not there.
	Which func(ctx context.Context, program string) (path, version string, err error)
}

// Local fills in what is of this process: its environment, and the programs on
// its path.
func (o Options) Local() Options {
	o.Environ, o.Which = os.Environ(), Which
	return o
}

// report collects findings.
type report struct {
	o    Options
	list []Finding
}

func (r *report) add(check string, st Status, subject, fix, format string, args ...any) {
	r.list = append(r.list, Finding{Check: check, Status: st, Subject: subject, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

// Run looks at everything. The order is that of what depends on what.
func Run(ctx context.Context, o Options) []Finding {
	r := &report{o: o}
	r.add("childlog", OK, o.Exe, "", "%s", o.Version)
	r.environment()
	if r.directory() {
		r.files()
		if !r.holder(ctx) {
			r.open(ctx)
		}
	}
	for _, h := range install.Harnesses() {
		r.harness(ctx, h)
	}
	return r.list
}

// Worst is the worst status of a list.
func Worst(list []Finding) Status {
	worst := OK
	for _, f := range list {
		if f.Status == Problem || f.Status == Warning && worst == OK {
			worst = f.Status
		}
	}
	return worst
}
