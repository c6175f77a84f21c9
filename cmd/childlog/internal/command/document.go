package command

import (
	"context"
	"os"

	"childlog/cmd/childlog/internal/manifest"
)

// document reads a JSON document from a file, or from stdin if name is "-".
// Beyond limit bytes it is refused. It is read before a store is taken: whoever
// writes it may be slow.
func (a *app) document(ctx context.Context, name string, limit int) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("%v", err)
		}
		defer f.Close()
		in = f
	}
	return interruptible(ctx, func() ([]byte, error) { return manifest.Read(in, limit) })
}
