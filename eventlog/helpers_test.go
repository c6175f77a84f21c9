package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	bolt "go.etcd.io/bbolt"

	"childlog/policy"
)

var ctx = context.Background()

// testingT is what a *testing.T and a *rapid.T share.
type testingT interface {
	require.TestingT
	Cleanup(func())
}

// testStore is a store that has to end sound: when the test is over it is
// closed, opened for reading and checked in full.
type testStore struct {
	*Store
	t       testingT
	dir     string
	damaged bool
}

// newStore makes a store in a new directory.
func newStore(t testing.TB, opts ...Options) *testStore {
	t.Helper()
	return newStoreAt(t, filepath.Join(t.TempDir(), "store"), opts...)
}

func newStoreAt(t testingT, dir string, opts ...Options) *testStore {
	_, err := Init(ctx, dir)
	require.NoError(t, err)
	return useStore(t, dir, opts...)
}

// useStore opens the store that is at dir.
func useStore(t testingT, dir string, opts ...Options) *testStore {
	ts := &testStore{t: t, dir: dir}
	t.Cleanup(ts.finish)
	ts.open(opts...)
	return ts
}

func (ts *testStore) open(opts ...Options) {
	s, err := Open(ctx, ts.dir, append(opts, Options{})[0])
	require.NoError(ts.t, err)
	ts.Store = s
}

// reopen closes the store and opens it again, as another process would.
func (ts *testStore) reopen(opts ...Options) {
	require.NoError(ts.t, ts.Close())
	ts.open(opts...)
}

// expectDamage lets the store end with findings: the test made them.
func (ts *testStore) expectDamage() { ts.damaged = true }

func (ts *testStore) finish() {
	if ts.Store == nil {
		return
	}
	err := ts.Close()
	if ts.damaged {
		return
	}
	require.NoError(ts.t, err)
	requireSound(ts.t, ts.dir)
}

// requireSound runs the full check over a store that nobody has open.
func requireSound(t require.TestingT, dir string) CheckReport {
	report := checkStore(t, dir)
	require.Empty(t, report.Findings)
	return report
}

func checkStore(t require.TestingT, dir string) CheckReport {
	s, err := Open(ctx, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	report, err := s.Check(ctx, CheckOptions{})
	require.NoError(t, err)
	return report
}

// unsign makes a store what it would be if nothing of it had ever been signed:
// what finds its damage then is in the logs. Nobody may have it open.
func unsign(t require.TestingT, dir string) {
	id, err := readIdentity(dir)
	require.NoError(t, err)
	id.Key = ""
	raw, err := json.Marshal(id)
	require.NoError(t, err)
	changeDB(t, filepath.Join(dir, journalFile), func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, raw) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, identityFile), append(raw, '\n'), 0o600))
	require.NoError(t, errors.Join(freshFile(filepath.Join(dir, keyFile)), freshFile(filepath.Join(dir, checkpointFile))))
}

// kinds lists the kinds of the findings, each once, in order.
func (r CheckReport) kinds() (kinds []string) {
	for _, f := range r.Findings {
		if len(kinds) == 0 || kinds[len(kinds)-1] != f.Kind {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// sid makes readable session ids: sid(7) ends in ...0007.
func sid(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("5e551041-0000-4000-8000-%012x", n))
}

// eid makes readable event ids.
func eid(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("e7e20000-0000-4000-8000-%012x", n))
}

func readOnlyDefaults() policy.Defaults {
	return policy.Defaults{Sandbox: policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), Approvals: policy.Ask}
}

// rootEvents are the events that begin a root.
func rootEvents(id uuid.UUID, label string) []NewEvent {
	created := Created{Kind: KindRoot, Root: id, MaxDepth: 3, Mode: ModeContinuable, Defaults: readOnlyDefaults()}
	return []NewEvent{{Type: TypeSessionCreated, Facts: created.Facts(), Media: MediaJSON, Content: fmt.Appendf(nil, `{"label":%q}`, label)}}
}

func (ts *testStore) transact(via Entry, batches ...Batch) ([]Result, error) {
	return ts.Transact(ctx, via, func(*View) ([]Batch, error) { return batches, nil })
}

// root creates a root with the given id and returns the id.
func (ts *testStore) root(id uuid.UUID) uuid.UUID {
	_, err := ts.transact(EntryCreate, Batch{Session: id, Events: rootEvents(id, "root")})
	require.NoError(ts.t, err)
	return id
}

// childBatches are the atomic unit of a delegation: the child's first events
// and the parent's delegation/started. parent is the row of a root at the
// capture.
func childBatches(parent *Row, child uuid.UUID, key string) []Batch {
	created := Created{Kind: KindChild, Parent: parent.Session, ParentSeq: parent.Head, ParentHead: parent.Hash, Root: parent.Root, Depth: parent.Depth + 1,
		MaxDepth: parent.MaxDepth, Mode: ModeContinuable, Defaults: readOnlyDefaults()}
	unit := []Batch{
		{Session: child, Events: []NewEvent{
			{Type: TypeSessionCreated, Facts: created.Facts()},
			{Type: TypeDelegationGranted},
			{Type: TypeSandboxMode, Facts: SandboxFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical())},
			{Type: TypeApprovalPolicy, Facts: ApprovalFacts(policy.Never)},
		}},
		{Session: parent.Session, Expect: Any(), Events: []NewEvent{{Type: TypeDelegationStarted}}},
	}
	return withReceipt(unit, plainReceipt(parent, child, key))
}

// plainReceipt is that of a child which was granted everything by a parent
// that nobody limited. It names the sandbox of childBatches.
func plainReceipt(parent *Row, child uuid.UUID, key string) Granted {
	readOnly, top := policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), policy.TopAuthority()
	return Granted{Parent: parent.Session, Child: child, ParentSeq: parent.Head, ParentHead: parent.Hash, Root: parent.Root, Depth: parent.Depth + 1,
		MaxDepth: parent.MaxDepth, Choices: policy.Choices{Role: policy.RoleGeneral}, Defaults: readOnlyDefaults(), Sandbox: &readOnly, Key: KeyHash(parent.Session, key),
		Ceiling: top, Requested: top, Granted: top, Fingerprint: policy.FingerprintOf(policy.RoleGeneral, top).Sum, ClassTable: policy.ClassTableVersion,
		Commitments: Commitments{Request: Hash{6}, Manifest: Hash{7}}}
}

// withReceipt puts a receipt, and what rests on it, into a delegation.
func withReceipt(unit []Batch, g Granted) []Batch {
	events := unit[0].Events
	granted := must(g.Facts())
	events[slices.IndexFunc(events, func(e NewEvent) bool { return e.Type == TypeDelegationGranted })].Facts = granted
	unit[1].Events[0].Facts = mustFacts(map[string]any{"child": g.Child, "receipt": Digest(granted)})
	return unit
}

// receiptIn reads the receipt of a delegation.
func receiptIn(unit []Batch) Granted {
	events := unit[0].Events
	i := slices.IndexFunc(events, func(e NewEvent) bool { return e.Type == TypeDelegationGranted })
	return must(ParseGranted(&Event{Type: TypeDelegationGranted, Version: ReceiptVersion, Facts: events[i].Facts}))
}

// delegation is the unit for a parent as it stands now.
func (ts *testStore) delegation(parent, child uuid.UUID, key string) []Batch {
	row, err := ts.Row(parent)
	require.NoError(ts.t, err)
	unit := childBatches(&row, child, key)
	g := receiptIn(unit)
	g.ParentReceipt = ts.receiptOf(parent)
	return withReceipt(unit, g)
}

// receiptOf is the digest of a session's receipt, zero for a root.
func (ts *testStore) receiptOf(session uuid.UUID) (digest Hash) {
	events, _, err := ts.Policy(ctx, session, 0)
	require.NoError(ts.t, err)
	for i := range events {
		if events[i].Type == TypeDelegationGranted {
			digest = Digest(events[i].Facts)
		}
	}
	return digest
}

// withSeed puts seed copies and their end into a delegation.
func withSeed(unit []Batch, seed ...NewEvent) []Batch {
	events := unit[0].Events
	created, err := ParseCreated(&Event{Type: TypeSessionCreated, Version: 1, Facts: events[0].Facts})
	if err != nil {
		panic(err)
	}
	created.SeedLen = uint64(len(seed))
	events[0].Facts = created.Facts()
	g := receiptIn(unit)
	g.SeedLen = created.SeedLen
	unit[0].Events = append(append(append(events[:1:1], seed...), NewEvent{Type: TypeSessionEndSeed}), events[1:]...)
	return withReceipt(unit, g)
}

// child delegates from parent.
func (ts *testStore) child(parent, id uuid.UUID, key string) uuid.UUID {
	_, err := ts.transact(EntryDelegation, ts.delegation(parent, id, key)...)
	require.NoError(ts.t, err)
	return id
}

// narrow appends a policy-bearing event.
func (ts *testStore) narrow(session uuid.UUID) uint64 {
	facts := NarrowedFacts(policy.Sandbox{Mode: policy.ReadOnly}.Canonical(), "operator")
	res, err := ts.transact(EntryOperator, Batch{Session: session, Expect: Any(), Events: []NewEvent{{Type: TypePolicyNarrowed, Facts: facts}}})
	require.NoError(ts.t, err)
	return res[0].LastSeq
}

// activate opens an activation.
func (ts *testStore) activate(session uuid.UUID, epoch uint64) {
	facts := mustFacts(map[string]any{"epoch": epoch, "boot": ts.Boot()})
	_, err := ts.transact(EntryRuntime, Batch{Session: session, Expect: Any(), Events: []NewEvent{{Type: TypeActivationStarted, Facts: facts}}})
	require.NoError(ts.t, err)
}

// text is an event of an open family with a text content.
func text(s string) NewEvent {
	return NewEvent{Type: TypeAssistantMessage, Media: MediaText, Content: []byte(s)}
}

// named is text with an event id.
func named(id uuid.UUID, s string) NewEvent {
	ev := text(s)
	ev.ID = id
	return ev
}

// say appends texts to the head, each as a batch and so a frame of its own.
func (ts *testStore) say(session uuid.UUID, texts ...string) {
	pending := make([]*Pending, len(texts))
	for i, s := range texts {
		var err error
		pending[i], err = ts.AppendAsync(ctx, Batch{Session: session, Expect: Any(), Events: []NewEvent{text(s)}})
		require.NoError(ts.t, err)
	}
	for _, p := range pending {
		_, err := p.Wait(ctx)
		require.NoError(ts.t, err)
	}
}

// numbers are n short texts.
func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("message %d", i+1)
	}
	return out
}

// seqs lists what a whole read returns: the seqs of its events, and its holes.
func (ts *testStore) seqs(session uuid.UUID) (seqs []uint64, holes []string) {
	for from := uint64(1); from != 0; {
		page, err := ts.Read(ctx, session, ReadOptions{From: from})
		require.NoError(ts.t, err)
		for _, ev := range page.Events {
			seqs = append(seqs, ev.Seq)
		}
		for _, h := range page.Holes {
			holes = append(holes, fmt.Sprintf("%d-%d", h.From, h.To))
		}
		from = page.Next
	}
	return seqs, holes
}

func upTo(n uint64) (out []uint64) {
	for i := uint64(1); i <= n; i++ {
		out = append(out, i)
	}
	return out
}

// texts reads the contents of a session's events from seq on.
func (ts *testStore) texts(session uuid.UUID, from uint64) (out []string) {
	err := ts.Replay(ctx, session, true, func(ev *Event) error {
		if ev.Seq >= from {
			out = append(out, string(ev.Content))
		}
		return ev.ContentErr
	})
	require.NoError(ts.t, err)
	return out
}

// copyDir copies a store, byte by byte.
func copyDir(t require.TestingT, from, to string) {
	require.NoError(t, os.MkdirAll(to, 0o700))
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		copyFile(t, filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
	}
}

// pageSizeOf reads the page size of a bbolt file off its first meta page.
func pageSizeOf(file []byte) int { return int(binary.LittleEndian.Uint32(file[16+8:])) }

func copyFile(t require.TestingT, from, to string) {
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// golden compares with a file under the module's testdata, or writes it. What
// stands in format/ is on disks out there and never changes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "testdata", filepath.FromSlash(name))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update once")
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(got, "\n"), name)
}

// isRefusal tells the errors of input that is refused.
func isRefusal(err error) bool { return errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) }

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// backwards is a clock that somebody keeps setting back.
type backwards struct{ calls atomic.Int64 }

func (b *backwards) now() time.Time { return time.Unix(1e9-b.calls.Add(1), 0) }

func marshalRow(t require.TestingT, row *Row) []byte {
	raw, err := msgpack.Marshal(row)
	require.NoError(t, err)
	return raw
}

func unmarshalRow(raw []byte, row *Row) error { return msgpack.Unmarshal(raw, row) }

// must is for what a test states itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
