// Package service is the HTTP/JSON API of a store: everything of the interface
// harness.Harness, an OpenAPI 3.1 document and a page made from it, events as
// they come (server-sent events), health and metrics.
//
// # Who may ask
//
// The peers of the store's Unix socket have the store's user id and are
// operators. Over TCP every request has a bearer token (package tokens) with a
// role; what a role may do is in roles.go. Open to all are the document, its
// page, /healthz and /readyz, which tell nothing of what is stored; the metrics
// need a token. TCP is loopback, or TLS.
//
// # What is refused
//
// A request passes what costs least first (service.go): the spelling of its
// path, the Host header (DNS rebinding), the marks that browsers put on requests
// of other sites, the token, its rate; then its body is read, as strictly as the
// command reads documents, and what it asks for is held against the role. The
// bounds are in limits.go. Large bodies share a fixed amount of memory. A slow
// client is cut off by time, a stream that is not read too; the client goes on
// from the last id.
//
// # Errors
//
// The codes, statuses and hints of operations are those of packages failure and
// harness; those of the service itself are beside what they refuse. A denied
// check is an answer (200). After outcome_unknown, or when no answer came, the
// same request is repeated with its ids or key. A panic is answered with 500 and
// nothing else; its stack goes to the log.
//
// # The log
//
// One line a request: route, status, code, time, bytes, the kind of peer, the
// token's id. No path or query, no header, no content, no text of a client.
// Beside that it has what whoever runs the service has to know, such as that a
// certificate was renewed (certificate.go), or that one does not load.
//
// # Choices
//
//   - Every operation is a POST of its request: names of sessions hold any
//     characters, and no value of a request then stands in a path, where proxies
//     and logs would keep it. So no path has a parameter, and a path is compared
//     byte by byte.
//   - A verification is answered as a whole at its end, which may take minutes; a
//     proxy in between has to wait so long. Its findings need all of the store, so
//     there is nothing to stream before. What bounds it is in verify.go.
//   - A certificate is looked at in each handshake, and no signal is needed to
//     have a new one taken: nobody forgets it, and half a replacement costs nothing.
//   - HTTP/1.1 only: HTTP/2 would put many requests on one counted connection.
//     Peers of the socket may do that, a bounded number at a time (trunk.go): it
//     is what half the rate of an embedded store takes on two cores.
//   - A good token is let in however many bad ones came from its address.
//   - The document is made beforehand and the metrics are written by hand, since
//     what makes either costs every other command, a hook among them, its start.
package service
