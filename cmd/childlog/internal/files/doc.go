// Package files is how a command reaches the files that its caller names.
//
// A command may run in the process of its caller or in the one that holds the
// store. Names are the caller's either way: they are relative to its directory,
// seen with its rights, and may exist for it alone, such as /dev/fd/63 of a
// shell's <(...). A holder that opened a name for a caller would also lend its
// rights to it: a caller in a sandbox could have any file of the user read or
// written, only by asking. So no command opens a name itself. It asks its
// [Files], and in a holder that is the caller's own process, which opens the
// file and hands the descriptor over (package forward). What is read then is
// read at full speed, and can be sought.
package files
