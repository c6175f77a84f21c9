package torture_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The tracer runs a process under ptrace and sees, in one order for all its
// threads, each call by which it changes a file and each line that it says.
// strace does the same, except for what is needed here: its counters are by
// thread, and a goroutine has no thread of its own; and it can't let a call
// take effect and then say that it failed.

// step is one traced call.
type step struct {
	call   string // pwrite64, fdatasync, fsync, ftruncate, write, unlink, rename, create; say is a write to stdout
	file   string // base name
	offset int64  // or the size of a ftruncate
	data   []byte
	failed bool // as the process was told
	done   bool // as the file knows
}

// fault makes calls fail.
type fault struct {
	call  string // "" is any
	file  string // "" is any
	nth   int    // of those, from 1
	on    bool   // and all later ones
	errno syscall.Errno
	done  bool // it takes effect all the same
	kill  bool // the process dies instead, before the call
}

var traced = map[uint64]string{
	unix.SYS_PWRITE64: "pwrite64", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_FSYNC: "fsync", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_WRITE: "write", unix.SYS_UNLINKAT: "unlink", unix.SYS_RENAME: "rename", unix.SYS_RENAMEAT: "rename", unix.SYS_OPENAT: "create",
	unix.SYS_MKDIRAT: "mkdir",
}

// canTrace skips where a process may not trace its own children.
func canTrace(t testing.TB) {
	t.Helper()
	if steps, err := traceCommand(exec.Command("/bin/true"), "/nowhere", nil, nil); err != nil {
		t.Skipf("ptrace is not allowed here: %v (%d steps)", err, len(steps))
	}
}

// trace runs a role to its end and returns the steps below dir. The
// process's own exit status is no error; what it said last tells.
func trace(t testing.TB, role, dir string, f *fault, env ...string) []step {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, roleVar+"="+role)...)
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	require.NoError(t, err)
	defer stderr.Close()
	cmd.Stderr = stderr
	steps, err := traceCommand(cmd, dir, f, func() { _, _ = stderr.Seek(0, 0) })
	require.NoError(t, err)
	said, err := os.ReadFile(stderr.Name())
	require.NoError(t, err)
	if len(said) > 0 {
		require.NoError(t, count(fmt.Errorf("%w: %s", errPanic, said)))
	}
	return steps
}

// syscallInfo is what PTRACE_GET_SYSCALL_INFO fills in.
type syscallInfo struct {
	op       uint8 // 1 at the entry, 2 at the exit
	_        [3]uint8
	arch     uint32
	ip, sp   uint64
	nr       uint64 // or the result, at the exit
	args     [6]uint64
	reserved uint64
}

const ptraceGetSyscallInfo = 0x420e

func traceCommand(cmd *exec.Cmd, dir string, f *fault, done func()) (steps []step, err error) {
	runtime.LockOSThread() // ptrace takes requests from the tracing thread only
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Process.Release()
		if done != nil {
			done()
		}
	}()
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return nil, err
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		return nil, err
	}
	tr := &tracer{pid: pid, dir: dir, fault: f, open: map[int]*running{}}
	for tid, signal := pid, 0; ; {
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return tr.steps, err
		}
		if tid, err = unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil); errors.Is(err, unix.EINTR) {
			tid, signal = pid, 0
			continue
		} else if err != nil {
			return tr.steps, err
		}
		signal = 0
		switch {
		case status.Exited() || status.Signaled():
			if tid == pid {
				return tr.steps, nil
			}
			tid = pid // nothing to resume; the leader, if it runs, says ESRCH
		case status.StopSignal() == unix.SIGTRAP|0x80:
			if err := tr.stopped(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return tr.steps, err
			}
		case status.StopSignal() == unix.SIGTRAP && status.TrapCause() > 0, status.StopSignal() == unix.SIGSTOP:
		default:
			signal = int(status.StopSignal())
		}
	}
}

type tracer struct {
	pid   int
	dir   string
	fault *fault
	seen  int // calls that the fault is about
	steps []step
	open  map[int]*running // by thread
}

// running is a call between its entry and its exit.
type running struct {
	step
	errno syscall.Errno // to be told
}

func (tr *tracer) stopped(tid int) error {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return errno
	}
	if info.op == 1 {
		return tr.enter(tid, &info)
	}
	r := tr.open[tid]
	if r == nil {
		return nil
	}
	delete(tr.open, tid)
	if r.errno != 0 {
		var regs unix.PtraceRegs
		if err := unix.PtraceGetRegs(tid, &regs); err != nil {
			return err
		}
		regs.Rax = uint64(-int64(r.errno))
		if err := unix.PtraceSetRegs(tid, &regs); err != nil {
			return err
		}
		r.failed = true
	} else if result := int64(info.nr); result < 0 {
		r.failed, r.done = true, false
	} else if r.call == "pwrite64" || r.call == "write" || r.call == "say" {
		r.data = r.data[:result]
	}
	tr.steps = append(tr.steps, r.step)
	return nil
}

func (tr *tracer) enter(tid int, info *syscallInfo) error {
	call := traced[info.nr]
	if call == "" || call == "create" && info.args[2]&unix.O_CREAT == 0 {
		return nil
	}
	r := &running{step: step{call: call, done: true}}
	path, err := "", error(nil)
	switch call {
	case "unlink", "create", "mkdir":
		path, err = tr.text(info.args[1])
	case "rename":
		at := info.args[1]
		if info.nr == unix.SYS_RENAMEAT {
			at = info.args[3]
		}
		path, err = tr.text(at)
	default:
		path, err = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tr.pid, info.args[0]))
	}
	switch {
	case err != nil:
		return nil // not one of the store's
	case call == "write" && info.args[0] == 1:
		r.call = "say"
	case path != tr.dir && !strings.HasPrefix(path, tr.dir+"/") && !strings.HasPrefix(path, filepath.Dir(tr.dir)+"/."+filepath.Base(tr.dir)):
		return nil
	}
	r.file = filepath.Base(path)
	switch call {
	case "pwrite64", "write":
		r.offset = int64(info.args[3])
		r.data = make([]byte, info.args[2])
		if err := tr.read(info.args[1], r.data); err != nil {
			return err
		}
	case "ftruncate":
		r.offset = int64(info.args[1])
	}
	if f := tr.fault; f != nil && r.call != "say" && (f.call == "" || f.call == call) && (f.file == "" || f.file == r.file) {
		if tr.seen++; tr.seen == f.nth || f.on && tr.seen > f.nth {
			if f.kill {
				return unix.Kill(tr.pid, unix.SIGKILL)
			}
			if r.errno, r.done = f.errno, f.done; !f.done {
				var regs unix.PtraceRegs
				if err := unix.PtraceGetRegs(tid, &regs); err != nil {
					return err
				}
				regs.Orig_rax = ^uint64(0) // no such call
				if err := unix.PtraceSetRegs(tid, &regs); err != nil {
					return err
				}
			}
		}
	}
	tr.open[tid] = r
	return nil
}

// read copies out of the traced process.
func (tr *tracer) read(address uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := unix.Iovec{Base: &into[0]}
	local.SetLen(len(into))
	n, err := unix.ProcessVMReadv(tr.pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err == nil && n != len(into) {
		err = fmt.Errorf("read %d of %d bytes of the traced process", n, len(into))
	}
	return err
}

func (tr *tracer) text(address uint64) (string, error) {
	var b []byte
	for len(b) < 4096 {
		word := make([]byte, 8)
		if err := tr.read(address+uint64(len(b)), word); err != nil {
			return "", err
		}
		if i := strings.IndexByte(string(word), 0); i >= 0 {
			return string(append(b, word[:i]...)), nil
		}
		b = append(b, word...)
	}
	return "", fmt.Errorf("a path without an end at %#x", address)
}
