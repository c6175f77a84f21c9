// Package trunk carries many requests at a time over one connection to the
// process that holds a store: those operations of the API (package harness) that
// write, as the Go client sends them over the store's socket.
//
// HTTP/1.1 has one request under way on a connection, so that 64 callers cost 64
// connections with their goroutines, and each request four system calls that no
// other one shares. Here the requests of callers who ask at the same time leave
// in one write, as their events are synced in one commit.
//
// The client asks for an upgrade of HTTP,
//
//	POST /v1/trunk HTTP/1.1
//	Upgrade: childlog-trunk/1
//
// and after the answer 101 both sides send frames: a header of ten bytes, which
// is three numbers, big endian, and a body.
//
//	4 bytes  length of the body
//	4 bytes  id, which the client chooses and no request under way has
//	2 bytes  of a request: how many bytes of the body are the operation's name,
//	         which the JSON of the request follows; 0 gives up the request of that
//	         id, which is answered all the same
//	         of an answer: its status of HTTP; the body is the JSON
//
// Each request is answered once, in any order. Status and JSON are what a POST
// to the path of the operation is answered with.
//
// # When the connection is lost
//
// A request that was handed to the system and not answered may have been carried
// out, and is of unknown outcome. [Writer.Taken] tells which were. The service
// gives up what it has begun for a client that hung up, as with HTTP.
//
// A service that is about to end, and one whose client was silent for minutes,
// shuts down its reading, answers what had arrived by then, and hangs up. A
// request that meets that was either written before, and is answered, or the
// system refused it as a whole, and the client sends it over a new connection.
// So resting clients lose nothing, and keep no connection from others.
package trunk
