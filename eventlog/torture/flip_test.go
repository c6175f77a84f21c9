package torture_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"childlog/eventlog"
	"childlog/replay"
)

// answers is what a store says of its sessions; "error" where it gives none.
func answers(s *eventlog.Store, sessions []uuid.UUID) map[string]string {
	out := map[string]string{}
	say := func(key string, err error, value any) {
		if out[key] = fmt.Sprint(value); err != nil {
			out[key] = "error"
		}
	}
	for _, id := range sessions {
		e, err := replay.Policy(ctx, s, id, 0)
		held := ""
		if err == nil {
			held, err = stated(&e, nil)
		}
		say("policy "+id.String(), err, fmt.Sprint(held, e.Seqs(), e.Receipt))
		h, n := sha256.New(), 0
		err = s.Replay(ctx, id, true, func(ev *eventlog.Event) error {
			n++
			fmt.Fprint(h, ev.Seq, ev.ID, ev.Type, ev.Hash)
			_, _ = h.Write(ev.Content)
			return ev.ContentErr
		})
		say("log "+id.String(), err, fmt.Sprintf("%d %x", n, h.Sum(nil)))
		row, err := s.Row(id)
		say("row "+id.String(), err, row)
		children, err := s.Children(id)
		say("children "+id.String(), err, children)
	}
	n := 0
	err := s.EachRow(ctx, func(*eventlog.Row) (bool, error) { n++; return true, nil })
	say("rows", err, n)
	return out
}

func init() {
	// Damages the store at a directory of its own as it is asked, looks at what
	// is left, and puts the bytes back.
	roles["damage"] = func() {
		v, err := newVandal(assigned().Dir)
		fail(err)
		for {
			var how, file string
			var offset, mask int
			if _, err := fmt.Scan(&how, &file, &offset, &mask); err != nil {
				return
			}
			result, err := v.try(how, file, offset, byte(mask))
			if err != nil {
				result = "failed: " + strings.ReplaceAll(err.Error(), "\n", " | ")
			}
			fmt.Println(result)
		}
	}
}

// vandal damages a store and knows what it said when it was whole.
type vandal struct {
	dir      string
	files    map[string][]byte
	sessions []uuid.UUID
	truth    map[string]string
}

func newVandal(dir string) (*vandal, error) {
	v := &vandal{dir: dir, files: map[string][]byte{}}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		if v.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	s, err := eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	err = s.EachRow(ctx, func(row *eventlog.Row) (bool, error) { v.sessions = append(v.sessions, row.Session); return true, nil })
	v.truth = answers(s, v.sessions)
	for key, value := range v.truth {
		if value == "error" {
			return nil, fmt.Errorf("the whole store gives no %s", key)
		}
	}
	return v, err
}

// damage changes one file: how is flip, cut, or write, a flip after which the
// store is written to.
func damage(b []byte, how string, offset int, mask byte) []byte {
	if how == "cut" {
		return b[:offset]
	}
	b = slices.Clone(b)
	b[offset] ^= mask
	return b
}

func (v *vandal) try(how, file string, offset int, mask byte) (result string, err error) {
	damaged := damage(v.files[file], how, offset, mask)
	if err := os.WriteFile(filepath.Join(v.dir, file), damaged, 0o600); err != nil {
		return "", err
	}
	defer func() {
		for name, b := range v.files {
			if how == "write" || name == file {
				err = errors.Join(err, os.WriteFile(filepath.Join(v.dir, name), b, 0o600))
			}
		}
	}()
	result, broken, err := v.read()
	if err != nil {
		return "", err
	}
	for name, b := range v.files {
		if name == file {
			b = damaged
		}
		if now, err := os.ReadFile(filepath.Join(v.dir, name)); err != nil || !bytes.Equal(now, b) {
			return "", fmt.Errorf("reading changed %s (%v)", name, err)
		}
	}
	if how == "write" {
		return v.append(result, broken)
	}
	return result, nil
}

// read opens the damaged store for reading. A policy or a log is what it was or
// an error; of whatever else differs the check knows. broken are the sessions
// that did not give all answers.
func (v *vandal) read() (result string, broken map[uuid.UUID]bool, err error) {
	broken = map[uuid.UUID]bool{}
	s, err := eventlog.Open(ctx, v.dir, eventlog.Options{ReadOnly: true})
	if err != nil {
		return "not opened", nil, refusal(err)
	}
	defer s.Close()
	result = "unused"
	var differs []string
	got := answers(s, v.sessions)
	for _, key := range slices.Sorted(maps.Keys(v.truth)) {
		what, id, _ := strings.Cut(key, " ")
		switch {
		case got[key] == v.truth[key]:
			continue
		case got[key] == "error":
			result = "an error"
			if id != "" {
				broken[uuid.MustParse(id)] = true
			}
			continue
		case what == "policy":
			return "", nil, fmt.Errorf("%w: %s: %s instead of %s", errPolicy, key, got[key], v.truth[key])
		case what == "log":
			return "", nil, fmt.Errorf("%w: %s: %s instead of %s", errLost, key, got[key], v.truth[key])
		}
		differs = append(differs, key)
	}
	report, err := s.Check(ctx, eventlog.CheckOptions{})
	switch {
	case err != nil && refusal(err) != nil:
		return "", nil, err
	case err == nil && report.OK() && len(differs) > 0:
		return "", nil, fmt.Errorf("%v differ and the check finds nothing", differs)
	case err == nil && report.OK() && result == "an error":
		return "", nil, fmt.Errorf("some answers are errors and the check finds nothing")
	case (err != nil || !report.OK()) && result == "unused":
		result = "reported"
	}
	return result, broken, nil
}

// refusal is nil if an error says in the right words that something is damaged.
func refusal(err error) error {
	if errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, eventlog.ErrStoreLost) || errors.Is(err, eventlog.ErrPolicyUnreadable) {
		return nil
	}
	return fmt.Errorf("not an error of damage: %w", err)
}

// append writes to the damaged store: it is refused, or each session takes an
// event or refuses one. What the sessions say afterwards is what they said, and
// that event.
func (v *vandal) append(result string, broken map[uuid.UUID]bool) (string, error) {
	s, err := eventlog.Open(ctx, v.dir, eventlog.Options{})
	if err != nil {
		return result + ", not written", refusal(err)
	}
	refused := 0
	for _, id := range v.sessions {
		_, err := s.Append(ctx, eventlog.Batch{Session: id, Expect: eventlog.Any(), Events: []eventlog.NewEvent{{Type: "plugin/note"}}})
		if err != nil {
			if err := refusal(err); err != nil && !errors.Is(err, eventlog.ErrReadOnly) {
				s.Close()
				return "", err
			}
			refused++
		}
	}
	if err := s.Close(); err != nil && refusal(err) != nil {
		return "", err
	}
	if s, err = eventlog.Open(ctx, v.dir, eventlog.Options{ReadOnly: true}); err != nil {
		return "", fmt.Errorf("it took appends and does not open any more: %w", err)
	}
	defer s.Close()
	got := answers(s, v.sessions)
	for _, id := range v.sessions {
		if key := "policy " + id.String(); got[key] != "error" && got[key] != v.truth[key] {
			return "", fmt.Errorf("%w after an append: %s: %s instead of %s", errPolicy, key, got[key], v.truth[key])
		}
		if key := "log " + id.String(); got[key] == "error" && !broken[id] {
			return "", fmt.Errorf("%w: %s was readable before the append", errLost, key)
		}
	}
	return fmt.Sprintf("%s, %d of %d sessions refused", result, refused, len(v.sessions)), nil
}

// damageStore is a small store with all kinds of pages, without space behind
// the last page. Its index covers all of it.
func damageStore(t *testing.T) string {
	dir := filepath.Join(fastDir(t), "store")
	p := plot{Seed: 42, Workers: 1, Shared: 2, Small: true}
	r := newPlot(t, dir, p)
	s, err := eventlog.Open(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	sc := p.script(0)
	for range 45 {
		o := sc.next()
		row, err := s.Row(o.session)
		require.NoError(t, err)
		a, err := o.do(s, p, row.Head)
		require.NoError(t, err)
		r.add(a)
	}
	require.NoError(t, s.Close())
	_, err = eventlog.Reindex(ctx, dir, eventlog.Options{})
	require.NoError(t, err)
	for _, name := range []string{"store.db", "index.db"} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, int64(highWater(b))*int64(pageSize(b))))
	}
	require.NoError(t, sound(dir))
	return dir
}

// damages asks another process for one damage after the other, and counts what
// comes of them by class.
type damages struct {
	*looker
	dir      string
	whole    string // a copy of the store, for when the process dies
	outcomes map[string]int
	breaches int
}

func newDamages(t *testing.T) *damages {
	dir := damageStore(t)
	d := &damages{looker: &looker{t: t, role: "damage", env: []string{assignment{Dir: dir}.env()}}, dir: dir, whole: dir + ".whole", outcomes: map[string]int{}}
	copyStore(t, dir, d.whole)
	t.Cleanup(func() {
		d.end()
		for _, key := range slices.Sorted(maps.Keys(d.outcomes)) {
			t.Logf("%6d  %s", d.outcomes[key], key)
		}
	})
	return d
}

func (d *damages) try(t *testing.T, how, file string, offset int, mask byte, class string) {
	t.Helper()
	answer, err := d.ask(fmt.Sprintf("%s %s %d %d", how, file, offset, mask))
	switch {
	case err != nil: // it died before it could put the bytes back
		copyStore(t, d.whole, d.dir)
	case isFailure(answer):
		err = breach(answer)
	case class == "journal value" && how == "write" && !strings.Contains(answer, ", 0 of ") && !strings.Contains(answer, ", 1 of "):
		err = fmt.Errorf("one damaged frame stops other sessions: %s", answer)
	}
	if err == nil {
		d.outcomes[class+": "+answer]++
		return
	}
	t.Errorf("%s %s at byte %d with %#x, which is %s: %v", how, file, offset, mask, class, count(err))
	if d.breaches++; d.breaches == 20 {
		t.FailNow()
	}
}

// TestEveryClassOfBytesIsFlipped: meta pages, branches, leaf elements, the
// freelist, keys, buckets, frames, contents, and what nothing leads to. Reading
// a damaged store gives the truth or an error, changes nothing and comes to an
// end; writing to it loses nothing more.
func TestEveryClassOfBytesIsFlipped(t *testing.T) {
	d := newDamages(t)
	random := rand.New(rand.NewPCG(9, 0))
	for _, file := range []string{"store.db", "index.db"} {
		b, err := os.ReadFile(filepath.Join(d.dir, file))
		require.NoError(t, err)
		class, err := classes(b)
		require.NoError(t, err)
		for offset, what := range class {
			// In the long form each byte of the structure, with two bits; every
			// few of what has a checksum of its own.
			every, bits := scale(250, 1), 2
			switch {
			case what == "":
				every, bits = scale(20_000, 200), 1
			case strings.HasSuffix(what, " value"):
				every, bits = scale(5000, 15), 1
			case what == "key":
				every, bits = scale(300, 1), 1
			}
			if random.IntN(every) > 0 {
				continue
			}
			if what == "" {
				what = "unused"
			}
			for range scale(1, bits) {
				how := "flip"
				if file == "store.db" && random.IntN(scale(3, 10)) == 0 {
					how = "write"
				}
				tally.flips.Add(1)
				d.try(t, how, file, offset, 1<<random.IntN(8), what)
			}
		}
	}
}

// TestEveryTruncation: the file ends at each page, in the middle of one, and at
// nothing.
func TestEveryTruncation(t *testing.T) {
	d := newDamages(t)
	for _, file := range []string{"store.db", "index.db", "IDENTITY"} {
		b, err := os.ReadFile(filepath.Join(d.dir, file))
		require.NoError(t, err)
		step := os.Getpagesize() / scale(1, 8)
		for at := 0; at < len(b); at += step {
			if testing.Short() && at/step%3 != 0 {
				continue
			}
			tally.cuts.Add(1)
			d.try(t, "cut", file, at, 0, "cut")
		}
	}
}
