package eventlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A content lies outside its frame, in the bucket "contents", so that small
// appends after a large one don't rewrite it and a redaction deletes keys
// without touching a frame.
//
//	key:   position u64be | event index in the frame u32be | chunk u32be
//	value: flags u8 | [salt 16, chunk 0 only] | bytes | crc32c u32le
//
// A chunk holds up to 64 KiB of the content; flags bit 0 marks bytes that are
// compressed with zstd, which is done where it shrinks them. The commitment
// is over the uncompressed content, so compression is no part of any hash.
// An empty content still has chunk 0, for its salt.
const (
	flagZstd      = 1
	contentKeyLen = 8 + 4 + 4
)

type storedChunk []byte

var (
	// Of what sessions hold, the next level saves 2 bytes of 100 more and takes
	// three times as long, which is most of what an append of a large content costs.
	zstdWriters = sync.Pool{New: func() any {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		return w
	}}
	zstdReaders = sync.Pool{New: func() any {
		r, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(chunkSize*2), zstd.WithDecodeAllCapLimit(true))
		return r
	}}
)

func contentKey(position uint64, index, chunk uint32) []byte {
	b := make([]byte, 0, contentKeyLen)
	b = binary.BigEndian.AppendUint64(b, position)
	b = binary.BigEndian.AppendUint32(b, index)
	return binary.BigEndian.AppendUint32(b, chunk)
}

// encodeContent cuts a content into stored chunks.
func encodeContent(content []byte, salt Salt) []storedChunk {
	var chunks []storedChunk
	for rest, first := content, true; first || len(rest) > 0; first = false {
		part := rest[:min(len(rest), chunkSize)]
		rest = rest[len(part):]
		chunk := make([]byte, 1, 1+len(salt)+len(part)+4)
		if first {
			chunk = append(chunk, salt[:]...)
		}
		head := len(chunk)
		if len(part) >= zstdMinLen {
			w := zstdWriters.Get().(*zstd.Encoder)
			if packed := w.EncodeAll(part, chunk[:head:head]); len(packed) < head+len(part) {
				chunk = packed
				chunk[0] |= flagZstd
			}
			zstdWriters.Put(w)
		}
		if chunk[0]&flagZstd == 0 {
			chunk = append(chunk, part...)
		}
		chunk = binary.LittleEndian.AppendUint32(chunk, crc32.Checksum(chunk, castagnoli))
		chunks = append(chunks, chunk)
	}
	return chunks
}

// decodeChunk checks one stored chunk and appends its bytes to dst. want is
// the number of bytes the chunk must hold.
func decodeChunk(dst, value []byte, first bool, want int) (out []byte, salt Salt, err error) {
	var scratch []byte
	plain, salt, err := openChunk(value, first, want, &scratch)
	return append(dst, plain...), salt, err
}

// openChunk checks one stored chunk and returns its bytes where they lie: in
// value, or in scratch if they were compressed.
func openChunk(value []byte, first bool, want int, scratch *[]byte) (plain []byte, salt Salt, err error) {
	head := 1
	if first {
		head += len(salt)
	}
	if len(value) < head+4 {
		return nil, salt, fmt.Errorf("chunk: want at least %d bytes, got %d", head+4, len(value))
	}
	body := value[:len(value)-4]
	if want, got := binary.LittleEndian.Uint32(value[len(value)-4:]), crc32.Checksum(body, castagnoli); want != got {
		return nil, salt, fmt.Errorf("chunk: checksum: want %08x, got %08x", want, got)
	}
	if body[0]&^byte(flagZstd) != 0 {
		return nil, salt, fmt.Errorf("chunk: flags: unknown bits in 0x%02x", body[0])
	}
	if first {
		copy(salt[:], body[1:])
	}
	if plain = body[head:]; body[0]&flagZstd != 0 {
		if cap(*scratch) < want {
			*scratch = make([]byte, 0, want)
		}
		r := zstdReaders.Get().(*zstd.Decoder)
		plain, err = r.DecodeAll(plain, (*scratch)[:0:want]) // it never writes beyond
		zstdReaders.Put(r)
		if err != nil {
			return nil, salt, fmt.Errorf("chunk: zstd: %w", err)
		}
	}
	if len(plain) != want {
		return nil, salt, fmt.Errorf("chunk: want %d bytes of content, got %d", want, len(plain))
	}
	return plain, salt, nil
}

// chunkCount is the number of chunks of a content of n bytes.
func chunkCount(n uint64) uint32 {
	if n == 0 {
		return 1
	}
	return uint32((n + chunkSize - 1) / chunkSize)
}
