package codex

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"childlog/cmd/childlog/internal/importer"
	"childlog/eventlog"
)

// rollouts writes about size bytes of rollouts of a realistic mix into dir: a
// root of many turns for every few children that it spawns, lines of 200 bytes
// to 60 KiB, texts that compress as source code and its output do.
func rollouts(t testing.TB, dir string, size int64) (files int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		b := make([]byte, 2+rnd.IntN(9))
		for j := range b {
			b[j] = "etaoinshrdlucmfwypvbgkjqxz_(){}.;=0123456789"[int(rnd.ExpFloat64()*9)%44]
		}
		words[i] = string(b)
	}
	text := func(n int) string { // escaped as JSON
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[int(rnd.ExpFloat64()*400)%len(words)])
			switch rnd.IntN(12) {
			case 0:
				b.WriteString(`\n    `)
			case 1:
				b.WriteString(`\"`)
			default:
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	var written int64
	for tree := 0; written < size; tree++ {
		root := fmt.Sprintf("019c8a4c-%04x-79a1-aa28-%012x", tree%0xffff, tree)
		for child := -1; child < 3 && written < size; child++ {
			files++
			id := root
			if child >= 0 {
				id = fmt.Sprintf("019c8a4d-%04x-79a1-aa28-%06x%06x", tree%0xffff, child, tree)
			}
			path := filepath.Join(dir, "2026", "02", fmt.Sprintf("%02d", 1+tree%28), "rollout-2026-02-23T12-40-23-"+id+".jsonl")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			f, err := os.Create(path)
			require.NoError(t, err)
			w := bufio.NewWriterSize(f, 1<<20)
			ordinal := 0
			line := func(typ, payload string) {
				n, err := fmt.Fprintf(w, `{"timestamp":"2026-02-23T11:%02d:%02d.275Z","ordinal":%d,"type":"%s","payload":%s}`+"\n", ordinal/60%60, ordinal%60, ordinal, typ, payload)
				require.NoError(t, err)
				written += int64(n)
				ordinal++
			}
			source := `"source":"cli"`
			if child >= 0 {
				source = fmt.Sprintf(`"parent_thread_id":"%s","source":{"subagent":{"thread_spawn":{"parent_thread_id":"%s","depth":1,"agent_path":"/root/task_%d","agent_nickname":"Boyle"}}}`, root, root, child)
			}
			line("session_meta", fmt.Sprintf(`{"id":"%s","timestamp":"2026-02-23T11:40:23.298Z","cwd":"/srv/garden","originator":"codex_exec","cli_version":"0.150.0",%s,"base_instructions":{"text":"%s"}}`, id, source, text(13000)))
			for turn := range 10 {
				turnID := fmt.Sprintf("019c8a4e-%04x-79a1-aa28-%012x", turn, tree)
				line("event_msg", `{"type":"task_started","turn_id":"`+turnID+`","model_context_window":258400}`)
				line("turn_context", `{"turn_id":"`+turnID+`","cwd":"/srv/garden","approval_policy":"on-request","sandbox_policy":{"type":"workspace-write","writable_roots":["/srv/garden"],"network_access":false,"exclude_tmpdir_env_var":false,"exclude_slash_tmp":false},"model":"gpt-5.3-codex","effort":"high","user_instructions":"`+text(2900)+`"}`)
				line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"`+text(500)+`"}]}`)
				for step := range 15 {
					call := "call_" + strconv.Itoa(turn*100+step)
					line("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"`+text(60)+`"}],"content":null,"encrypted_content":"`+random(rnd, 1500)+`"}`)
					line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"`+text(150)+`\"}","call_id":"`+call+`"}`)
					line("response_item", `{"type":"function_call_output","call_id":"`+call+`","output":"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n`+text(100+int(rnd.ExpFloat64()*4000)%60000)+`"}`)
					n := ordinal * 100
					line("event_msg", fmt.Sprintf(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":1,"total_tokens":%d},"model_context_window":258400},"rate_limits":{"primary":{"used_percent":0.0,"window_minutes":300,"resets_at":1771864831}}}`, n, n/2, n/9, n+n/9))
				}
				if child < 0 && turn < 3 {
					call := fmt.Sprintf("call_spawn_%d", turn)
					line("response_item", fmt.Sprintf(`{"type":"function_call","name":"spawn_agent","namespace":"collaboration","arguments":"{\"task_name\":\"task_%d\",\"message\":\"gAAAAAB%s\"}","call_id":"%s"}`, turn, random(rnd, 300), call))
					line("response_item", fmt.Sprintf(`{"type":"function_call_output","call_id":"%s","output":"{\"task_name\":\"/root/task_%d\"}"}`, call, turn))
				}
				line("event_msg", `{"type":"task_complete","turn_id":"`+turnID+`","last_agent_message":"`+text(200)+`"}`)
			}
			require.NoError(t, w.Flush())
			require.NoError(t, f.Close())
		}
	}
	return files
}

// random is what does not compress: a token of base 64.
func random(rnd *rand.Rand, n int) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[rnd.IntN(64)]
	}
	return string(b)
}

// TestBigImport imports as many mebibytes as CHILDLOG_BIG_IMPORT says, and says
// what that took: `CHILDLOG_BIG_IMPORT=1024 go test -run TestBigImport -v`. The
// peak of memory is the whole process's, so nothing else should run in it.
func TestBigImport(t *testing.T) {
	mib, err := strconv.ParseInt(os.Getenv("CHILDLOG_BIG_IMPORT"), 10, 64)
	if err != nil {
		t.Skip("CHILDLOG_BIG_IMPORT is not set to a number of MiB")
	}
	dir := t.TempDir()
	files := rollouts(t, dir, mib<<20)
	runtime.GC()
	where := filepath.Join(dir, "store")
	_, err = eventlog.Init(t.Context(), where)
	require.NoError(t, err)
	s, err := eventlog.Open(t.Context(), where, eventlog.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	before := peak(t)
	begun, work := time.Now(), cpu(t)
	first := load(t, s, importer.Options{}, dir)
	took, work := time.Since(begun), cpu(t)-work
	require.Equal(t, files, first.Sessions)
	high := peak(t)
	begun, workAgain := time.Now(), cpu(t)
	second := load(t, s, importer.Options{}, dir)
	again, workAgain := time.Since(begun), cpu(t)-workAgain
	require.Zero(t, second.Events)
	require.Equal(t, files, second.Unchanged)
	require.Equal(t, first.DelegationList, second.DelegationList)
	t.Logf("%d MiB, %d files, %d events, %d delegations: %.1f s, %.1f MB/s, %.1f s of work; again: %.1f s, %.1f%%, %.1f%% of the work; peak %d MiB, then %d MiB, %d MiB before",
		mib, files, first.Events, first.Delegations, took.Seconds(), float64(mib<<20)/1e6/took.Seconds(), work.Seconds(), again.Seconds(), 100*again.Seconds()/took.Seconds(), 100*workAgain.Seconds()/work.Seconds(), high>>20, peak(t)>>20, before>>20)
}

// cpu is the time that this process has worked, of all its threads.
func cpu(t testing.TB) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is the most memory that this process has had (proc(5), VmHWM), in bytes.
func peak(t testing.TB) int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here to read the peak of memory from")
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}
