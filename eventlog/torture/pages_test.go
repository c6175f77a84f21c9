package torture_test

import (
	"encoding/binary"
	"fmt"
)

// classes says for each byte of a bbolt file what it is, as far as the newest
// meta page leads to it. It is a reader of its own, so that what the store's
// page checker overlooks is not overlooked here too.
func classes(b []byte) ([]string, error) {
	size := pageSize(b)
	m := &pageMap{b: b, size: size, class: make([]string, len(b))}
	best, root, free := uint64(0), uint64(0), uint64(0)
	for page := range 2 {
		m.mark(page*size, 80, "meta")
		meta := b[page*size+16:]
		if txid := binary.LittleEndian.Uint64(meta[48:]); txid >= best {
			best, root, free = txid, binary.LittleEndian.Uint64(meta[16:]), binary.LittleEndian.Uint64(meta[32:])
		}
	}
	at := int(free) * size
	count := int(binary.LittleEndian.Uint16(b[at+10:]))
	m.mark(at, 16+8*count, "freelist")
	return m.class, m.page(int(root), "top")
}

type pageMap struct {
	b     []byte
	size  int
	class []string
}

func (m *pageMap) mark(at, n int, class string) {
	for i := range n {
		m.class[at+i] = class
	}
}

// page marks a page and what is below it. what names the bucket.
func (m *pageMap) page(id int, what string) error {
	at := id * m.size
	if at+16 > len(m.b) {
		return fmt.Errorf("page %d is not in the file", id)
	}
	return m.elements(at, what)
}

func (m *pageMap) elements(at int, what string) error {
	b := m.b[at:]
	flags, count := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	kind := map[uint16]string{1: "branch", 2: "leaf"}[flags]
	if kind == "" {
		return fmt.Errorf("byte %d: a page of flags %d", at, flags)
	}
	m.mark(at, 16+16*count, kind)
	for i := range count {
		element := 16 + 16*i
		u32 := func(n int) int { return int(binary.LittleEndian.Uint32(b[element+n:])) }
		if kind == "branch" {
			m.mark(at+element+u32(0), u32(4), "key")
			if err := m.page(int(binary.LittleEndian.Uint64(b[element+8:])), what); err != nil {
				return err
			}
			continue
		}
		key, length, value := element+u32(4), u32(8), u32(12)
		m.mark(at+key, length, "key")
		if u32(0)&1 == 0 {
			m.mark(at+key+length, value, what+" value")
			continue
		}
		m.mark(at+key+length, 16, "bucket")
		name, root := string(b[key:key+length]), binary.LittleEndian.Uint64(b[key+length:])
		err := error(nil)
		if root == 0 { // small: its page follows in the value
			err = m.elements(at+key+length+16, name)
		} else {
			err = m.page(int(root), name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// highWater is how many pages a bbolt file says it has.
func highWater(b []byte) (pages uint64) {
	for page := range 2 {
		pages = max(pages, binary.LittleEndian.Uint64(b[page*pageSize(b)+16+40:]))
	}
	return pages
}

// pageSize is what the first meta page says.
func pageSize(b []byte) int { return int(binary.LittleEndian.Uint32(b[16+8:])) }
