package deepseek

import (
	"crypto/sha256"
	"testing"

	"childlog/cmd/childlog/internal/importer"
)

// BenchmarkLine maps the lines of a usual turn.
func BenchmarkLine(b *testing.B) {
	all := []string{
		`{"type":"turn/start","seq":0,"time":1790000000000,"data":{"turn":1}}`,
		`{"type":"user/message","data":{"content":[{"type":"text","text":"The berth is number 12. Remember it, and whatever else I tell you about the harbour, for as long as this takes."}],"source":{"kind":"user"},"role":"user","id":"m-0001"}}`,
		`{"type":"tool/call","data":{"turn":1,"step":1,"callId":"call-1","name":"bash","arguments":"{\"command\": \"ls -la /srv/harbour/berths\"}"}}`,
		`{"type":"tool/result","data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"call-1"},"content":[{"type":"tool-result","toolCallId":"call-1","content":[{"type":"text","text":"total 12"}],"isError":false}]}}}`,
		`{"type":"text-chunks","data":{"turn":1,"step":1,"index":0,"dt":[1,2,3,4],"texts":["It"," is"," twelve"," and"," more"]}}`,
		`{"type":"turn/end","data":{"turn":1,"reason":{"kind":"completed"}}}`,
	}
	size := 0
	for _, l := range all {
		size += len(l)
	}
	b.SetBytes(int64(size / len(all)))
	h := header{id: "x", depth: -1}
	m := newMapper(&h, nil)
	n := newNotes(&file{h: h})
	b.ReportAllocs()
	for i := range b.N {
		raw := []byte(all[i%len(all)])
		line := importer.Line{Number: int64(i) + 2, Bytes: raw, Len: int64(len(raw)), Sum: sha256.Sum256(raw)}
		out := m.next(line)
		n.line(&out, line, 1)
	}
}
