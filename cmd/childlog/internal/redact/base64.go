package redact

import "encoding/base64"

// Bounds of what is taken for base64 of a text.
const (
	least64   = 20 // bytes of a run
	deepest64 = 2  // base64 within base64
	sample64  = 64 // bytes that are decoded before the rest, a multiple of 4
)

var encoded = newAlphabet("09azAZ", "+/_-")

// wrapped filters what runs of base64 hold. A run keeps its alphabet and its
// padding, so what reads it goes on reading it.
func (f *Filter) wrapped(t []byte, c Counts, level int) []byte {
	if level >= deepest64 {
		return t
	}
	var out []byte
	done := 0
	for i := 0; i < len(t); {
		end := encoded.run(t, i, len(t))
		for pad := 0; pad < 2 && end < len(t) && t[end] == '='; pad++ {
			end++
		}
		if end-i >= least64 {
			if encoding, plain := decode64(t[i:end]); plain != nil {
				if clean := f.unwrapped(plain, c, level+1); string(clean) != string(plain) {
					out = encoding.AppendEncode(append(out, t[done:i]...), clean)
					done = end
				}
			}
		}
		i = max(end, i+1)
	}
	if done == 0 {
		return t
	}
	return append(out, t[done:]...)
}

// unwrapped filters a text that stood in base64: as JSON if it is.
func (f *Filter) unwrapped(t []byte, c Counts, level int) []byte {
	if looksJSON(t) {
		if out, err := f.JSON(t, c); err == nil {
			return out
		}
	}
	return f.text(t, c, level)
}

// decode64 decodes a run of base64 that holds text, in whichever of the four
// encodings of RFC 4648 it is; nil if it is none or holds no text.
func decode64(run []byte) (*base64.Encoding, []byte) {
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if len(run) > 2*sample64 {
			head := make([]byte, sample64)
			if n, err := e.Decode(head, run[:sample64]); err != nil || !isText(cutRune(head[:n])) {
				continue
			}
		}
		plain := make([]byte, e.DecodedLen(len(run)))
		n, err := e.Decode(plain, run)
		if err == nil && n > 0 && isText(plain[:n]) {
			return e, plain[:n]
		}
	}
	return nil, nil
}

// cutRune drops a character at the end that the sample may have cut.
func cutRune(t []byte) []byte {
	for n := 1; n <= 4 && n <= len(t); n++ {
		if c := t[len(t)-n]; c < 0x80 {
			return t
		} else if c >= 0xc0 {
			return t[:len(t)-n]
		}
	}
	return t
}
