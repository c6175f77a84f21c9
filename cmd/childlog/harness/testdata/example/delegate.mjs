// A harness for Node, whose types TypeScript checks (childlog.d.mts): it makes a
// root and a child, asks before each tool call, takes a denial for what it is,
// and follows the child's log.
//
//   childlog token new --role harness
//   childlog serve --listen 127.0.0.1:7431
//   node delegate.mjs http://127.0.0.1:7431 TOKEN

// @ts-check
import { Childlog, ChildlogError } from "./childlog.mjs";

const [base, token] = process.argv.slice(2);
if (!base || !token) {
  console.error("usage: node delegate.mjs URL TOKEN");
  process.exit(2);
}
const log = new Childlog(base, token);

const root = await log.call("root", { label: "release notes", sandbox: { mode: "workspace-write" }, workspace: "/srv/app" });

// Under a key a retry is safe: it finds the child that is there.
const delegation = { parent: root.session, child: { key: "run 4, call 7", label: "notes", role: "implement", write_scope: ["docs"] } };
const child = await log.call("delegate", delegation);
const again = await log.call("delegate", delegation);
console.log("one child:", again.existing && again.session === child.session);
console.log("approvals:", child.policy.approvals.policy); // never ask, always reject

const { epoch } = await log.call("activate", { session: child.session, by: root.session });
const session = child.session;
await log.call("append", { session, epoch, events: [{ id: crypto.randomUUID(), type: "user/message", content: { text: "write the notes" } }] });

// Many calls at once, to show a person a plan: nothing is recorded, and each is
// checked again when it is made.
const plan = await log.call("check_batch", {
  session,
  calls: ["docs/notes.md", "src/main.go"].map((path, i) => ({ call: `p${i}`, tool: "write_file", args: { path } })),
});
console.log("plan:", plan.items.map(({ judgement, error }) => judgement?.verdict ?? error?.code).join(", "));

/** Runs a tool only after it was allowed. An error is no permission either. */
async function use(/** @type {import("./childlog.mjs").Call} */ call, /** @type {() => void} */ run) {
  const answer = await log.call("check", { session, epoch, record: true, call });
  if (answer.verdict !== "allow") {
    console.log(`${call.call}: ${answer.verdict}, ${answer.code}`); // this goes to the model: it reports and does not retry
    return;
  }
  run();
  await log.call("append", { session, epoch, events: [{ type: "tool/result", facts: { call: call.call, outcome: "ok" } }] });
  console.log(`${call.call}: done`);
}
await use({ call: "c1", tool: "write_file", args: { path: "docs/notes.md" } }, () => {});
await use({ call: "c2", tool: "write_file", args: { path: "src/main.go" } }, () => {
  throw new Error("it was denied and ran all the same");
});

// An epoch that another process took over is fenced: whoever is late, stops.
try {
  await log.call("append", { session, epoch: epoch + 1, events: [{ type: "user/message", content_text: "late" }] });
} catch (error) {
  if (!(error instanceof ChildlogError)) throw error;
  console.log("late:", error.code);
}

await log.call("settle", { session, epoch, outcome: "completed" });
const notices = await log.call("notices", { session: root.session });
console.log("denied:", notices.items[0].denied);

console.log((await log.call("verify", {})).status);

const stop = new AbortController();
for await (const { event } of log.follow({ session, types: ["tool/*", "session/settled"], signal: stop.signal })) {
  console.log(event.seq, event.type);
  if (event.type === "session/settled") stop.abort();
}
