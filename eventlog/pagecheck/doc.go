// Package pagecheck reads the pages of a bbolt file without bbolt.
//
// bbolt keeps a checksum over its two meta pages and over nothing else. A
// flipped bit in a freelist makes the next commits overwrite data that is still
// in use, a flipped element count shortens a bucket, and a flipped meta page
// makes the last commit disappear; bbolt reports none of the three. A store
// calls [Inspect] before its first write and refuses to write when the report
// is not OK. [InspectAll] is the full check. [Walk] is for salvage: it hands out
// what can still be read and says what cannot.
//
// # File layout
//
// A file is an array of pages of one size. Integers are little-endian here; the
// format itself uses the order of the machine that wrote the file.
//
//	page   0       8      10      12          16
//	       +-------+-------+-------+-----------+----------------------------+
//	       | id    | flags | count | overflow  | meta, elements or page ids |
//	       | u64   | u16   | u16   | u32       |                            |
//	       +-------+-------+-------+-----------+----------------------------+
//	       flags: 0x01 branch, 0x02 leaf, 0x04 meta, 0x10 freelist
//	       A page continues over the `overflow` pages that follow it; those
//	       carry no header.
//
//	meta   (pages 0 and 1)
//	       | magic u32 | version u32 | page size u32 | flags u32 |
//	       | root page u64 | root sequence u64 | freelist page u64 |
//	       | high water mark u64 | txid u64 | FNV-1a 64 of the 56 bytes before |
//	       Of the valid ones the higher txid counts. A freelist page of all ones
//	       means that the freelist is not stored.
//
//	branch | pos u32 | ksize u32 | page u64 | * count, then the keys
//	leaf   | flags u32 | pos u32 | ksize u32 | vsize u32 | * count, then key and
//	       value of each; flags 1 marks a bucket
//	       pos counts from the start of its own element. The data is packed:
//	       it starts where the element table ends, and each element's data
//	       starts where the data of the one before it ends.
//
//	bucket (the value of a leaf element with flags 1)
//	       | root page u64 | sequence u64 | with root 0: a whole leaf page |
//
//	free   | ascending page ids u64 | * count; with count 0xffff the first u64
//	       is the real count
//
// # What is found
//
// Both functions that inspect check the meta pages, the size of the file, the
// freelist, every branch page, the root bucket's leaf pages and that no page is
// used twice. The packing rule does most of the work on a page: the first
// element's pos states the count a second time, each pos states the sizes before
// it a second time, and the end of the last element states the overflow a second
// time. A single flipped bit in a count is therefore found on every page that is
// read, including a count that got smaller.
//
// Inspect does not read the leaf pages of the buckets, except for the last one,
// to which whoever appends adds, and the first 32 bytes of some: the first leaf
// of a bucket, the leaf in front of a run of free pages, and a few leaves with
// the longest overflow. The second makes a free page inside a leaf's overflow
// visible, so that every single flipped bit in a freelist entry is found. The
// third shows pages that no bucket has any more. How deep a bucket is, and so
// which pages are leaves, is read off its left and its right edge, because all
// leaves of a bbolt bucket are equally deep.
//
// InspectAll reads every leaf, including those of nested buckets, and finds all
// pages that are neither in use nor free.
//
// # What is not found
//
//   - Flips inside keys and values, as long as the keys stay in order; the names
//     of buckets are keys too. That is for checksums in the values.
//   - A bucket's sequence, and the unused rest of a meta page.
//   - A changed size of the last element of a page, if the bytes gained or lost
//     at the end of the page are zero.
//   - Pages that are whole but old: a write that never reached the disk and left
//     a page of an earlier transaction in its place, with keys in bounds.
//   - By Inspect: damage inside leaf pages but the last of a bucket, and a branch entry that names an
//     overflow page of a leaf instead of a leaf. A bucket element that names a
//     page further down in its own bucket is found if the pages cut off that way
//     do not all look like overflow of others.
//
// A store covers the first two by checksums over its records and by storing the
// next key as the bucket's sequence.
//
// # Limits
//
// Page sizes from 1 KiB to 64 KiB that are powers of two, at most 2^32 pages,
// branches at most 64 deep, leaf pages of at most 64 MiB. A file beyond the page
// limit is an error; anything else beyond is a problem in the report. Memory is
// four bits for each page of the file, one leaf page, the branch pages of one path,
// 4 MiB of bucket names, and at most 1,000 problems of each kind. No input makes
// the package panic.
//
// The file must not change while it is read: pages of a commit in progress look
// like damage. The functions share no state and may run at the same time, on the
// same reader too. They only call ReadAt.
package pagecheck
