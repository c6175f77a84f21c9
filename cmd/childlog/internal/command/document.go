package command

import (
	"context"
	"io"

	"childlog/cmd/childlog/internal/manifest"
)

// readFile reads a whole file of the caller's.
func (a *app) readFile(name string) ([]byte, error) {
	f, err := a.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	return io.ReadAll(f)
}

// document reads a JSON document from a file, or from stdin if name is "-".
// Beyond limit bytes it is refused. It is read before a store is taken: whoever
// writes it may be slow.
func (a *app) document(ctx context.Context, name string, limit int) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		f, err := a.files.Open(name)
		if err != nil {
			return nil, usagef("%v", err)
		}
		defer f.Close()
		in = f
	}
	return interruptible(ctx, func() ([]byte, error) { return manifest.Read(in, limit) })
}
