package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// options of a run.
type options struct {
	quick        bool
	dir          string // a new directory below -dir, removed at the end
	rounds       int
	warm, window time.Duration
	budget       time.Duration // after which a row that reads begins no further round
	command      string        // the childlog command, built on first use
}

type optionsJSON struct {
	Quick    bool   `json:"quick"`
	Rounds   int    `json:"rounds"`
	WarmUpMS int64  `json:"warm_up_ms"`
	WindowMS int64  `json:"window_ms"`
	Run      string `json:"run,omitempty"`
}

// size is n in a full run and less in a quick one.
func (o *options) size(full, quick int) int {
	if o.quick {
		return quick
	}
	return full
}

// work is one row of the table or several that share what they need.
type work struct {
	names []string
	run   func(o *options, rs map[string]*row) ([]target, error)
}

// works in the order in which they run.
var works = []work{
	{[]string{"append-64"}, runAppend64},
	{[]string{"sign-64"}, runSign64},
	{[]string{"socket-64"}, runSocket64},
	{[]string{"append-512"}, runAppend512},
	{[]string{"append-1"}, runAppend1},
	{[]string{"inflight-64"}, runInflight},
	{[]string{"policy-1m", "policy-process", "memory"}, runLong},
	{[]string{"replay"}, runReplay},
	{[]string{"open-crash"}, runOpenCrash},
	{[]string{"disk"}, runDisk},
	{[]string{"cost"}, runCost},
}

func main() {
	if task := os.Getenv(taskVariable); task != "" {
		if err := runTask(task, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := f.Bool("quick", false, "smaller sizes and shorter rounds: under a minute")
	only := f.String("run", "", "run the rows whose name matches this `regexp`")
	parent := f.String("dir", os.TempDir(), "write below this `directory`; its file system is what is measured")
	out := f.String("out", "result.json", "write the result for machines to this `file`")
	profile := f.String("cpuprofile", "", "write a CPU profile of this process to this `file`; with -run, of one row")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	o := &options{quick: *quick, rounds: 7, warm: 400 * time.Millisecond, window: 1200 * time.Millisecond, budget: 20 * time.Second}
	if o.quick {
		o.rounds, o.warm, o.window, o.budget = 3, 100*time.Millisecond, 300*time.Millisecond, 2*time.Second
	}
	if o.dir, err = os.MkdirTemp(*parent, "childlog-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	defer removeOnSignal(o.dir)()
	if *profile != "" {
		p, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer p.Close()
		if err := pprof.StartCPUProfile(p); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	res := &result{Env: environmentOf(o.dir), Options: optionsJSON{Quick: o.quick, Rounds: o.rounds, WarmUpMS: o.warm.Milliseconds(), WindowMS: o.window.Milliseconds(), Run: *only}}
	if res.Env.FileSystem == "tmpfs" {
		fmt.Fprintf(os.Stderr, "%s is a tmpfs, where a sync costs nothing: name a place on a disk with -dir\n", *parent)
	}
	if err := res.measure(o, pick); err != nil {
		return err
	}
	if len(res.Rows) == 0 {
		return fmt.Errorf("-run %q matches no row: %s", *only, strings.Join(rowNames(), ", "))
	}
	fmt.Printf("%s, %d cores (%s), %s, %s; load average before %s\n", res.Env.Go, res.Env.Cores, res.Env.CPU, res.Env.Kernel, res.Env.FileSystem, res.Env.Load)
	if o.quick {
		fmt.Println("quick: smaller sizes than the targets are for")
	}
	res.print(os.Stdout)
	return res.save(*out)
}

// removeOnSignal removes the directory if the program is interrupted, which may
// be in the middle of anything. The returned function ends the watch.
func removeOnSignal(dir string) (end func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			fmt.Fprintln(os.Stderr, "\nbench: interrupted")
			_ = os.RemoveAll(dir) // what is still being written may stay
			os.Exit(130)
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// measure runs the works that hold a picked row, each in a directory of its
// own that goes before the next.
func (r *result) measure(o *options, pick *regexp.Regexp) error {
	for _, w := range works {
		rows := map[string]*row{}
		for _, name := range w.names {
			if pick.MatchString(name) {
				rows[name] = &row{Name: name}
				r.Rows = append(r.Rows, rows[name])
			}
		}
		if len(rows) == 0 {
			continue
		}
		names := strings.Join(w.names, ", ")
		fmt.Fprintf(os.Stderr, "%s ...", names)
		begin := time.Now()
		targets, err := w.run(o, rows)
		if err != nil {
			fmt.Fprintln(os.Stderr)
			return fmt.Errorf("%s: %w", names, err)
		}
		took := time.Since(begin)
		for _, row := range rows {
			row.Seconds = took.Seconds()
		}
		r.Targets = append(r.Targets, targets...)
		fmt.Fprintf(os.Stderr, " %.1f s\n", took.Seconds())
	}
	return nil
}

func rowNames() (all []string) {
	for _, w := range works {
		all = append(all, w.names...)
	}
	return all
}

// scratch makes a directory for one row; done removes it.
func (o *options) scratch(name string) (dir string, done func() error, err error) {
	dir = filepath.Join(o.dir, name)
	return dir, func() error { return os.RemoveAll(dir) }, os.Mkdir(dir, 0o700)
}
