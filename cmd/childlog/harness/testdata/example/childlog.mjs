// A client of childlog's service with nothing but fetch. Runs in Node 20 and
// later, Deno, Bun and browsers; childlog.d.mts has the types for TypeScript.

/** What an operation was refused with. `code` is stable, such as "conflict". */
export class ChildlogError extends Error {
  constructor(status, { code, message, hint, ...facts }) {
    super(message);
    Object.assign(this, { name: "ChildlogError", status, code, hint, facts });
  }
}

/** A write was sent and its answer did not arrive: repeat the same request. */
export class OutcomeUnknownError extends ChildlogError {
  constructor(cause) {
    super(0, { code: "outcome_unknown", message: `sent, and no answer came: ${cause}`, hint: "repeat it with the same ids or key" });
  }
}

export class Childlog {
  #base;
  #headers;

  /** @param {string} base such as http://127.0.0.1:7431 */
  constructor(base, token) {
    this.#base = base.replace(/\/$/, "");
    this.#headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  /** Calls one operation by its name; see the OpenAPI document for all of them. */
  async call(operation, request = {}) {
    let response, text;
    try {
      response = await fetch(`${this.#base}/v1/${operation}`, {
        method: "POST",
        headers: { ...this.#headers, "Content-Type": "application/json" },
        body: JSON.stringify(request),
      });
      text = await response.text();
    } catch (cause) {
      throw new OutcomeUnknownError(cause);
    }
    if (response.ok) return JSON.parse(text);
    throw asError(response.status, text);
  }

  /**
   * Yields events, those that are there and then each new one, until the signal
   * aborts. A stream that is lost is taken up again behind the last event.
   */
  async *follow({ session, after, types = [], signal } = {}) {
    for (let pause = 50; !signal?.aborted; pause = Math.min(2 * pause, 5000)) {
      const query = new URLSearchParams(types.map((type) => ["types", type]));
      if (session) query.set("session", session);
      try {
        const response = await fetch(`${this.#base}/v1/follow?${query}`, {
          headers: { ...this.#headers, Accept: "text/event-stream", ...(after ? { "Last-Event-ID": after } : {}) },
          signal,
        });
        if (!response.ok) throw asError(response.status, await response.text());
        for await (const { event, data } of serverEvents(response.body)) {
          if (event === "error") throw asError(0, data);
          const followed = JSON.parse(data);
          yield followed;
          after = followed.cursor;
          pause = 50;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof ChildlogError && error.status < 500 && error.code !== "store_closed") throw error;
      }
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }
}

function asError(status, text) {
  try {
    return new ChildlogError(status, JSON.parse(text).error);
  } catch {
    return new ChildlogError(status, { code: "other", message: `HTTP status ${status}`, hint: "is it a childlog service?" });
  }
}

/** Splits a body into server-sent events; comments, the heartbeats, are dropped. */
async function* serverEvents(body) {
  let buffer = "";
  let event = "message";
  let data = [];
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    buffer += chunk;
    for (let end; (end = buffer.indexOf("\n")) >= 0; ) {
      const line = buffer.slice(0, end).replace(/\r$/, "");
      buffer = buffer.slice(end + 1);
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n") };
        [event, data] = ["message", []];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      } else if (line.startsWith("event:")) {
        event = line.slice(6).trim();
      }
    }
  }
}
