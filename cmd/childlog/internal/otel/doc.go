// Package otel writes sessions as OpenTelemetry traces, for the tools that
// people already look at agents with.
//
// # Form
//
// The output is OTLP JSON as the file exporter of OpenTelemetry writes it: one
// TracesData object a line (opentelemetry.proto.trace.v1). The JSON encoding of
// OTLP differs from that of other protobuf messages: trace and span ids are
// lower-case hex, enums are numbers, 64-bit integers are strings, names are
// lowerCamelCase (OTLP specification 1.x, "JSON Protobuf Encoding"). A line
// holds at most [spansALine] spans of one session.
//
// # What becomes what
//
// A session is a span invoke_agent, a tool call a span execute_tool below it, by
// the conventions for generative AI of OpenTelemetry, which are still in
// development. A child's span lies below that of its parent, also where the
// parent is not part of the export. All sessions of a tree are one trace. What
// else bears on policy (switches, narrowings, delegations, asks, activations) is
// an event of the session's span. A decision is attributes of its call's span:
// childlog.decision.*. A call that was denied has the status error, with the code
// as error.type. Copies in a seed belong to another session and are left out.
//
// Trace and span ids are derived from the ids of sessions and events, so that a
// second export, or one of another part of the tree, names the same spans.
//
// # What it is worth
//
// Times are claims of the clocks that wrote them. Where an end lies before its
// beginning, the span has no length and childlog.time.adjusted says so. A trace
// proves nothing; childlog.hash is the digest of the log that it was made of.
// Contents (prompts, arguments, results) are left out unless asked for.
package otel
