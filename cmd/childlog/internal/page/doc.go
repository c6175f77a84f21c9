// Package page writes reviews as one web page that can be kept, shown and
// printed: one file, no script, no request to anywhere.
//
// # What a page may do
//
// Nothing. Its Content-Security-Policy allows one style sheet, named by its
// hash, and no script, picture, font, frame, form or connection, so that text
// from a log could not act even if it got past the escaping (CSP Level 3, the
// meta element of HTML). Folding is the details element.
//
// # What a log may do to it
//
// A review holds text from logs. All of it passes through the export filter
// (package redact), then through [term.Escape], which makes control characters,
// terminal sequences and direction overrides visible, and then through the
// escaping of html/template. This is done to every string of the value, by its type
// and not by its place, so a field that a later version adds is covered, too.
//
// # Order
//
// A session is shown as the command review shows it: one sentence with how far
// it can be trusted, exceptions, receipt, policy over time, denials, timeline,
// usage, redactions, the chain up.
package page
