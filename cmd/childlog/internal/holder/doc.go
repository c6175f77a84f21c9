// Package holder lets the process that holds a store serve it to others of the
// same user, on the Unix socket SOCK in the store's directory.
//
// The socket speaks HTTP: the service's API, and beside it the upgrade with
// which commands are handed over as a whole (package forward), and the one for
// many requests of the API at a time (package trunk). Who may connect
// is decided by the kernel twice: the socket has mode 0600, and the user id of
// the process at the other end must be this one's.
//
// # Life of the socket
//
// A holder serves only while it has the store's LOCK, so at most one does at any
// time. The socket is made in a directory of its own within the store, of mode
// 0700, and renamed to its name when it listens and has its mode: nobody can
// reach it before, and it takes the place of one that a killed holder left. Who
// connects to such a one is refused by the kernel, which is how the others know
// that nobody is there; no process id is looked at. It is removed before the
// lock is given back.
//
// # Stopping
//
// When the context of [Serve] ends no new connection is taken, commands and
// requests that are at work get the grace to end, those that only wait for
// something new are ended at once, and then the rest. Serve returns when the
// last one has; the store is whole and can be closed. What was acknowledged is
// durable, as ever.
package holder
