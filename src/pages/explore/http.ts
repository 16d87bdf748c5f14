/** Requests over plain HTTP to the node that served the page. */
import { setClock } from "./format.js";
import type { HealthResponse } from "./responses.js";

/** Error of a request: the node's message, and its reason if it has one. */
export class NodeError extends Error {
  override readonly name = "NodeError";
  constructor(
    message: string,
    /** Reason as in docs/errors.md; UNREACHABLE if no node responds. */
    readonly reason: string,
  ) {
    super(message);
  }
}

/** HTTP client of the node. */
export interface Http {
  /** Requests a path and parses the response as JSON. Rejects with NodeError. */
  fetchJson<T>(path: string, signal?: AbortSignal): Promise<T>;
  /** Requests a path and returns the response as unparsed text. Rejects with NodeError. */
  fetchText(path: string, signal?: AbortSignal): Promise<string>;
  /**
   * Requests a stream as lines of JSON, with the identity of the reader, which an EventSource cannot send. Yields the
   * parsed lines until the stream ends or the signal aborts. Rejects with NodeError.
   */
  fetchLines<T>(path: string, signal: AbortSignal): AsyncGenerator<T, void>;
  /** Returns the health; undefined without a response. A failing node responds with status 503 and its health. */
  fetchHealth(): Promise<HealthResponse | undefined>;
  /** Sends JSON to a path. Rejects with NodeError. */
  post(path: string, body: object): Promise<void>;
  /** Returns the URL of a path of the node. */
  urlOf(path: string): string;
}

const timeoutMs = 15_000;
const healthTimeoutMs = 10_000;

/**
 * Creates the HTTP client.
 *
 * @param page location of this page, to which the paths of the node are relative.
 * @param headersOf returns the headers of a request.
 */
export function createHttp(
  page: Location,
  headersOf: () => Promise<Readonly<Record<string, string>>> = () => Promise.resolve({}),
): Http {
  const base = new URL(page.pathname.replace(/\/+$/, ""), page.origin);
  const urlOf = (path: string): string => {
    // A URL resolves these segments, so the response would be about something else.
    if (/(^|\/)\.\.?(\/|$)/.test(path.split("?")[0]!) && path !== "./") {
      throw new NodeError(
        "A name in this address must not be . or ..; read it with gatehouse storage get.",
        "INVALID_REQUEST",
      );
    }
    return new URL(path, base).href;
  };

  async function* fetchLines<T>(path: string, signal: AbortSignal): AsyncGenerator<T, void> {
    const headers = { ...(await headersOf()), Accept: "application/jsonl" };
    const response = await fetch(urlOf(path), { headers, signal, credentials: "omit" });
    if (!response.ok || response.body === null) {
      throw errorOf(response.status, await response.text());
    }
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
      rest = lines.pop()!;
      yield* lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line) as T);
    }
  }

  async function request(path: string, init: RequestInit, signal?: AbortSignal): Promise<string> {
    const headers = { ...(await headersOf()), ...(init.body !== undefined && { "Content-Type": "application/json" }) };
    const signals = [AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])];
    try {
      const response = await fetch(urlOf(path), {
        ...init,
        headers,
        signal: AbortSignal.any(signals),
        credentials: "omit",
      });
      const text = await response.text();
      // The Date header of a cached response is in the past.
      if (response.headers.get("cache-control")?.includes("no-store")) {
        setClock(Date.parse(response.headers.get("date") ?? ""));
      }
      if (!response.ok) {
        throw errorOf(response.status, text);
      }
      return text;
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof NodeError ? error : new NodeError("The node does not respond.", "UNREACHABLE");
    }
  }

  const fetchText = (path: string, signal?: AbortSignal): Promise<string> => request(path, {}, signal);
  return {
    urlOf,
    fetchText,
    fetchLines,
    async fetchHealth() {
      try {
        const response = await fetch(urlOf("health"), { signal: AbortSignal.timeout(healthTimeoutMs) });
        return (await response.json()) as HealthResponse;
      } catch {
        return undefined;
      }
    },
    async post(path, body) {
      await request(path, { method: "POST", body: JSON.stringify(body) });
    },
    fetchJson: async <T>(path: string, signal?: AbortSignal) => JSON.parse(await fetchText(path, signal)) as T,
  };
}

function errorOf(status: number, text: string): NodeError {
  try {
    const { error, errorCode } = JSON.parse(text) as { error: unknown; errorCode: unknown };
    if (typeof error === "string") {
      return new NodeError(error, String(errorCode));
    }
  } catch {
    // A proxy in front of the node may respond with a body that is not JSON.
  }
  return new NodeError(`The node, or a proxy before it, responded with status ${status}.`, "UNSPECIFIED");
}

/** Returns a path with a query. Undefined values are left out; a list adds one parameter per item. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  const parameters = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      (typeof value === "string" ? [value] : (value ?? [])).map((item) => [name, item]),
    ),
  );
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`;
}
