package forward

import (
	"io"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/term"
)

// Env is what a command has of whoever asked for it. In a holder that is
// another process, and each of these goes through the connection to it.
type Env struct {
	Stdin          io.Reader
	Input          []byte // all that Stdin holds, where it is at hand: nobody has to ask for it; nil: it is not
	Stdout, Stderr io.Writer
	Out, Err       term.Console // of Stdout and Stderr
	Getenv         func(string) string
	Files          files.Files
	Stopping       <-chan struct{} // closed when the holder stops; nil: never
	Version        string          // of the caller's program
	Store          string          // the store's directory, absolute, as the caller names it; "": as the command line says
}
