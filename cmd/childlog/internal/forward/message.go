package forward

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	codes "childlog/cmd/childlog/internal/failure"
	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/term"
)

// Protocol is what both sides must speak. It changes whenever a frame does.
const Protocol = "childlog-command/2"

// Path is where the upgrade is asked for.
const Path = "/v1/command"

// Variables are those of the environment that a command reads. No other leaves
// the caller's process.
var Variables = []string{"CHILDLOG_DEFAULT_SANDBOX", "CHILDLOG_DEFAULT_APPROVALS", "HOME", "NO_COLOR", "TERM"}

// Text in messages is bytes: names of files and arguments need not be UTF-8.
type (
	// hello asks for a command to be run.
	hello struct {
		Version   string            `json:"version"` // of the caller's program, for words only
		Arguments [][]byte          `json:"arguments"`
		Variables map[string][]byte `json:"variables"`
		Out       console           `json:"out"`
		Err       console           `json:"err"`
		Store     []byte            `json:"store"`
		Input     []byte            `json:"input,omitzero"` // all of stdin, if it was at hand
	}

	console struct {
		Terminal bool `json:"terminal"`
		Width    int  `json:"width"`
	}

	// request asks the caller for something of its own.
	request struct {
		ID   uint32 `json:"id"`
		Op   op     `json:"op"`
		Name []byte `json:"name,omitzero"`
		Size int    `json:"size,omitzero"` // of stdin: at most so many bytes
		From int    `json:"from,omitzero"` // of a directory: the first entry
		Of   uint32 `json:"of,omitzero"`   // the request that the draft came with
		What string `json:"what,omitzero"` // a directory is for

		Names [][]byte `json:"names,omitzero"` // of several places

		Index      bool `json:"index,omitzero"`      // of a use of git
		Submodules bool `json:"submodules,omitzero"` // likewise
	}

	// reply answers a request.
	reply struct {
		ID      uint32   `json:"id"`
		File    bool     `json:"file,omitzero"` // a descriptor comes along
		Name    []byte   `json:"name,omitzero"`
		Path    []byte   `json:"path,omitzero"`
		Info    *info    `json:"info,omitzero"`
		Entries []entry  `json:"entries,omitzero"`
		Rest    bool     `json:"rest,omitzero"`   // there are more entries
		Places  []place  `json:"places,omitzero"` // of the names, in their order
		Git     *git     `json:"git,omitzero"`
		Failure *failure `json:"failure,omitzero"`

		opened *os.File // what came along
		data   []byte   // of stdin
	}

	// git is why git must not be run, or that it may.
	git struct {
		May bool   `json:"may,omitzero"`
		Why string `json:"why,omitzero"`
	}

	entry struct {
		Base []byte `json:"base"`
		Type uint32 `json:"type"`
	}

	info struct {
		Base     []byte `json:"base"`
		Bytes    int64  `json:"bytes,omitzero"`
		Bits     uint32 `json:"bits"`
		Modified int64  `json:"modified,omitzero"` // nanoseconds since 1970
		Device   uint64 `json:"device,omitzero"`
		Inode    uint64 `json:"inode,omitzero"`
		Links    uint64 `json:"links,omitzero"`
	}

	// place is where a name leads.
	place struct {
		Path     []byte   `json:"path,omitzero"`
		Info     *info    `json:"info,omitzero"`
		Dangling bool     `json:"dangling,omitzero"`
		Failure  *failure `json:"failure,omitzero"`
	}

	// failure is an error of the caller's system.
	failure struct {
		Op    string `json:"op,omitzero"`
		Path  []byte `json:"path,omitzero"`
		Errno int    `json:"errno,omitzero"`
		Code  string `json:"code,omitzero"` // of an error of childlog's own
		Text  string `json:"text"`
	}

	// exit ends a command.
	exit struct {
		Code    int  `json:"code"`
		Stopped bool `json:"stopped,omitzero"` // by the holder, which ends
	}
)

// op is what a request asks for.
type op string

const (
	opStdin     op = "stdin"
	opOpen      op = "open"
	opStat      op = "stat"
	opLstat     op = "lstat"
	opReadDir   op = "readdir"
	opLinks     op = "evalsymlinks"
	opAbs       op = "abs"
	opReal      op = "real"    // where names lead
	opGit       op = "git"     // whether git runs nothing there
	opRewrite   op = "rewrite" // a file, for what takes its place
	opCreate    op = "create"  // a draft
	opCommit    op = "commit"
	opDiscard   op = "discard"
	opDirectory op = "directory"
)

func infoOf(fi fs.FileInfo) *info {
	i := files.InfoOf(fi)
	return &info{Base: []byte(i.Base), Bytes: i.Bytes, Bits: uint32(i.Bits), Modified: i.Modified.UnixNano(), Device: i.Device, Inode: i.Inode, Links: i.Links}
}

func (i *info) fileInfo() *files.Info {
	return &files.Info{Base: string(i.Base), Bytes: i.Bytes, Bits: fs.FileMode(i.Bits), Modified: time.Unix(0, i.Modified), Device: i.Device, Inode: i.Inode, Links: i.Links}
}

func placeOf(p files.Place) (out place) {
	switch {
	case errors.Is(p.Err, files.ErrDangling):
		out.Dangling = true
	case p.Err != nil:
		out.Failure = failureOf(p.Err)
	default:
		out.Path = []byte(p.Path)
		if p.Info != nil {
			out.Info = infoOf(p.Info)
		}
	}
	return out
}

// place makes of what a caller said what its own file system would have. One that
// says nothing is an error.
func (p *place) place() (out files.Place) {
	switch {
	case p.Dangling:
		out.Err = files.ErrDangling
	case p.Failure != nil:
		out.Err = p.Failure.err()
	case len(p.Path) == 0:
		out.Err = fmt.Errorf("%w: a reply that does not say where a name leads", ErrProtocol)
	default:
		out.Path = string(p.Path)
		if p.Info != nil {
			out.Info = p.Info.fileInfo()
		}
	}
	return out
}

// failureOf describes an error so that the other side can tell it in the same
// words, and find the same kind of error in it.
func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe == err {
		f.Op, f.Path = pe.Op, []byte(pe.Path)
		f.Text = pe.Err.Error()
	}
	if no := syscall.Errno(0); errors.As(err, &no) {
		f.Errno = int(no)
	} else if errors.Is(err, fs.ErrExist) {
		f.Errno = int(syscall.EEXIST)
	} else if errors.Is(err, fs.ErrPermission) {
		f.Errno = int(syscall.EACCES)
	} else {
		f.Code = codes.Of(err).Code
	}
	return f
}

func (f *failure) err() error {
	var err error = &remoteError{f.Text, syscall.Errno(f.Errno), codes.Sentinel(f.Code)}
	if f.Op != "" {
		return &fs.PathError{Op: f.Op, Path: string(f.Path), Err: err}
	}
	return err
}

// remoteError says what the caller's system said.
type remoteError struct {
	text  string
	errno syscall.Errno // 0: none
	is    error         // nil: nothing of childlog's own
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return e.is
	}
	return e.errno
}

func consoleOf(c term.Console) console { return console{c.Terminal, c.Width} }

// console bounds what a caller says of its terminal: output is laid out for it.
func (c console) term() term.Console {
	return term.Console{Terminal: c.Terminal, Width: min(max(c.Width, 0), 10_000)}
}
