// Types of childlog.mjs: the operations that the example uses. The OpenAPI
// document of a service describes all of them; a generator makes types of it.

export class ChildlogError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly facts: Record<string, unknown>;
}

export class OutcomeUnknownError extends ChildlogError {}

export interface Sandbox {
  mode: "read-only" | "workspace-write" | "danger-full-access";
  writable_roots?: string[];
  network?: boolean;
}

export interface Child {
  key?: string;
  label?: string;
  role?: string;
  /** Left out or null: the parent's. A list: only these. Empty: no tool at all. */
  tools?: string[] | null;
  denied_tools?: string[];
  /** Places below the workspace. Empty: nothing may be written. */
  write_scope?: string[];
  max_steps?: number;
}

export interface Call {
  call: string;
  tool: string;
  args: object;
}

export interface Judgement {
  session: string;
  call: string;
  verdict: "allow" | "deny" | "needs_approval";
  code: string;
  reason: string;
  change: string | null;
  recorded: { call_seq: number; decision_seq: number } | null;
}

export interface Event {
  seq: number;
  id: string;
  type: string;
  time: string;
  facts: Record<string, unknown>;
  content?: unknown;
  content_text?: string;
  content_base64?: string;
}

export interface Operations {
  root: [{ label?: string; sandbox?: Sandbox; workspace?: string }, { session: string }];
  delegate: [
    { parent: string; epoch?: number; child: Child },
    { session: string; existing: boolean; runtime_context: string; policy: { approvals: { policy: string } } },
  ];
  activate: [{ session: string; by: string }, { session: string; epoch: number }];
  append: [
    { session: string; epoch?: number; events: { id?: string; type: string; facts?: object; content?: unknown; content_text?: string }[] },
    { session: string; first_seq: number; last_seq: number; hash: string; replayed: boolean },
  ];
  check: [{ session: string; call: Call; record?: boolean; epoch?: number }, Judgement];
  /** Each item has one of the two; a call without a judgement was not decided. */
  check_batch: [
    { session: string; calls: Call[]; record?: boolean; epoch?: number },
    { items: { judgement?: Judgement; error?: { code: string; message: string; hint: string } }[] },
  ];
  /** Reads the whole store, and answers at the end: a fetch may need a longer time-out for a large one. */
  verify: [{ session?: string; key?: string; anchors?: string[] }, { ok: boolean; status: string; statement: string; events: number }];
  settle: [{ session: string; outcome: string; epoch?: number }, { session: string; seq: number }];
  notices: [{ session: string }, { items: { child: string; outcome: string; denied: number; denials: Record<string, number> }[] }];
}

export class Childlog {
  constructor(base: string, token?: string);
  call<Name extends keyof Operations>(operation: Name, request: Operations[Name][0]): Promise<Operations[Name][1]>;
  follow(options?: { session?: string; after?: string; types?: string[]; signal?: AbortSignal }): AsyncGenerator<{
    cursor: string;
    session: string;
    event: Event;
  }>;
}
