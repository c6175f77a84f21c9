package pagecheck

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDamaged is wrapped by [Report.Err] and by the error of a [Walk] that has
// no valid meta page to start from.
var ErrDamaged = errors.New("bbolt file is damaged")

// ErrNoBucket is wrapped by the error of a [Walk] that did not find its bucket.
// The problems returned with it say whether damage may be the reason.
var ErrNoBucket = errors.New("bucket not found")

// Kind says what is wrong with a page. The values are stable and may be stored
// and compared.
type Kind string

const (
	// KindOneMetaInvalid: one of the two meta pages is invalid. The last commit
	// may be missing, and nothing else would show it.
	KindOneMetaInvalid Kind = "one-meta-invalid"
	// KindNoValidMeta: neither meta page is valid; nothing else was read.
	KindNoValidMeta Kind = "no-valid-meta"
	// KindTruncated: the file ends before a page that it should have.
	KindTruncated Kind = "truncated"
	// KindUnreadable: reading the page failed.
	KindUnreadable Kind = "unreadable"
	// KindOutOfRange: a page or its overflow is not between page 2 and the high
	// water mark.
	KindOutOfRange Kind = "page-out-of-range"
	// KindWrongType: a page is not of the type its place calls for.
	KindWrongType Kind = "wrong-page-type"
	// KindIDMismatch: a page states another id than its own.
	KindIDMismatch Kind = "page-id-mismatch"
	// KindKeysOutOfOrder: keys of a page do not ascend, or leave the range that
	// the branch pages above give to the page.
	KindKeysOutOfOrder Kind = "keys-out-of-order"
	// KindReferencedTwice: a page is used in two places. A cycle is one too.
	KindReferencedTwice Kind = "referenced-twice"
	// KindFreelistDamaged: the list of free pages is malformed: a count beyond
	// its page, ids out of order, repeated or out of range.
	KindFreelistDamaged Kind = "freelist-damaged"
	// KindFreelistLivePage: a page in use is listed as free. The next commits
	// would overwrite it.
	KindFreelistLivePage Kind = "freelist-live-page"
	// KindCountMismatch: a page's element count disagrees with where the data
	// of its first element starts.
	KindCountMismatch Kind = "count-mismatch"
	// KindSizeMismatch: the elements of a page do not end where its overflow
	// says, or bytes that are not zero follow them.
	KindSizeMismatch Kind = "size-mismatch"
	// KindElementDamaged: an element points outside of its page, does not line
	// up with its neighbours, or has unknown flags.
	KindElementDamaged Kind = "element-damaged"
	// KindBucketDamaged: an element that should hold a bucket does not.
	KindBucketDamaged Kind = "bucket-damaged"
	// KindUnaccounted: pages are neither in use nor listed as free. Either a
	// bucket lost them, or the freelist did, which only wastes space. Page is
	// the first of a run.
	KindUnaccounted Kind = "page-unaccounted"
	// KindTooLarge: a page or a list exceeds a limit of this package and was
	// not read in full.
	KindTooLarge Kind = "too-large"
	// KindTooDeep: branches are nested deeper than 64.
	KindTooDeep Kind = "too-deep"
	// KindMore: more problems were found than are listed.
	KindMore Kind = "more-problems"
)

// Problem is one finding.
type Problem struct {
	// Page is the id of the damaged page, or of the page that is referred to
	// wrongly. Its bytes start at Page times Report.PageSize.
	Page uint64
	Kind Kind
	// Detail is for people: one lower-case line with what was found and what
	// was expected. Its wording may change.
	Detail string
}

// String is "page N: kind: detail".
func (p Problem) String() string {
	return fmt.Sprintf("page %d: %s: %s", p.Page, p.Kind, p.Detail)
}

// MetaState describes one of the two meta pages.
type MetaState struct {
	Valid bool
	// Reason says why the page is not valid.
	Reason string
	// Txid is the transaction that wrote the page. For an invalid page it is
	// what the page says, or 0 if the page could not be read.
	Txid uint64
}

// Bucket is a top-level bucket.
type Bucket struct {
	Name []byte
	// Root is the id of the bucket's top page, 0 for an inline bucket.
	Root uint64
	// Sequence as bbolt's Bucket.Sequence returns it. No check covers it.
	Sequence uint64
	// Inline: the bucket is stored in the root bucket's leaf page.
	Inline bool
}

func (b Bucket) top() ref { return top(b.Root, fmt.Sprintf("bucket %q", b.Name)) }

// Report is the result of [Inspect] and [InspectAll].
type Report struct {
	// PageSize in bytes, 0 if no meta page is valid.
	PageSize int
	// Pages is the high water mark: the file uses pages 0 to Pages-1.
	Pages uint64
	// Txid is the transaction of the meta page that bbolt would use.
	Txid uint64
	// Metas are pages 0 and 1.
	Metas [2]MetaState
	// Buckets at the top level, in key order. Damaged ones are left out.
	Buckets []Bucket
	// Branches and Leaves count the pages reached, without their overflow and
	// without inline buckets.
	Branches, Leaves uint64
	// Free counts the ids in the freelist, 0 if it is not stored.
	Free uint64
	// Problems in the order found, at most 1,000 of a kind; what is beyond is
	// counted in a last problem of KindMore.
	Problems []Problem
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Err is nil for a report that is OK, and otherwise an error that wraps
// ErrDamaged and names the first problems.
func (r Report) Err() error {
	if r.OK() {
		return nil
	}
	const shown = 3
	var b strings.Builder
	for i, p := range r.Problems[:min(shown, len(r.Problems))] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	if more := len(r.Problems) - shown; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return fmt.Errorf("%w: %s", ErrDamaged, b.String())
}

// maxPerKind is a limit for each kind, so that a flood of one kind does not hide
// the others.
const maxPerKind = 1000

type problems struct {
	list    []Problem
	perKind map[Kind]int
	dropped uint64
}

func (p *problems) add(page uint64, kind Kind, format string, args ...any) {
	if p.perKind == nil {
		p.perKind = make(map[Kind]int)
	}
	if p.perKind[kind] >= maxPerKind {
		p.dropped++
		return
	}
	p.perKind[kind]++
	p.list = append(p.list, Problem{Page: page, Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// total counts all problems, listed or not.
func (p *problems) total() uint64 { return uint64(len(p.list)) + p.dropped }

// done returns the list, closed with a KindMore entry if it is not complete.
func (p *problems) done() []Problem {
	if p.dropped == 0 {
		return p.list
	}
	return append(p.list, Problem{
		Kind:   KindMore,
		Detail: fmt.Sprintf("%d more problems are not listed", p.dropped),
	})
}
