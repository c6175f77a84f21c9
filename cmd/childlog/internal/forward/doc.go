// Package forward carries one run of a command from the process that was
// started for it to the one that holds the store.
//
// The caller has parsed its command line and found a holder's socket in the
// store's directory ([Dial]). It asks for an upgrade of HTTP,
//
//	POST /v1/command HTTP/1.1
//	Upgrade: childlog-command/2
//
// and after the answer 101 both sides speak frames: a byte that says what it
// is, four bytes of length, big endian, and so many bytes.
//
//	caller  hello      H  arguments, variables, consoles, the store's name
//	holder  out, err   o e  what it prints, at most 64 KiB a frame
//	holder  request    q  of stdin or of a file of the caller's, with a number
//	caller  reply      R  to the request of that number; may bring a descriptor
//	caller  data       D  the number and bytes of stdin; none: it ended
//	caller  interrupt  C  the caller got a signal
//	holder  exit       x  the exit code; the last frame
//
// The holder leads. It asks for stdin only when the command reads it, and for
// so many bytes as the command wants, so what a command leaves unread is left
// to who reads stdin next. Only a caller that has its stdin at hand, to the end,
// sends it along with hello. Where many names lead is asked in one request: a hook
// waits for each way there and back. Whether git would run something in a repository the
// caller finds out itself, with its files. It opens no name of the caller's: the caller opens
// the file and passes the descriptor along (SCM_RIGHTS). A connection that ends
// cancels the command.
//
// # Trust
//
// Both run under one user id, which each side checks of the other. That does not
// make them one: either may be a process in a sandbox. The holder therefore
// lends a caller nothing but the operations of the store. And the caller opens
// for a holder only what its own command line names, and what lies below that: a
// forged socket in a directory that a sandboxed process can write gets nothing
// that it was not about to be shown.
//
// # When the connection is lost
//
// Before hello was sent nothing happened, and the caller opens the store itself.
// After it a command that may write has an unknown outcome, as if a commit had
// failed: a retry with the same ids finds out. [LostError] tells them apart.
package forward
