/** Requests data over plain HTTP from the node that served the page. */
import type { HeadAnswer } from "./answers.js";
import { createSession, type Session } from "./session.js";

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

/** Node that served the page. */
export interface ExploredNode {
  readonly session: Session;
  /** Returns a response as JSON. Rejects with NodeError. */
  ask<Answer>(path: string, signal?: AbortSignal): Promise<Answer>;
  /** Returns a response as text, character for character. */
  askText(path: string, signal?: AbortSignal): Promise<string>;
  /** Returns the URL of a path of the node. */
  urlOf(path: string): string;
}

const timeoutMs = 15_000;

/** @param page location of this page, to which the paths of the node are relative. */
export function createNode(page: Location): ExploredNode {
  const base = new URL(page.pathname.replace(/\/+$/, ""), page.origin);
  const urlOf = (path: string): string => new URL(path, base).href;
  const session = createSession(async () => {
    const { genesisHash } = JSON.parse(await get("chain/head", {})) as HeadAnswer;
    return genesisHash;
  });

  async function get(path: string, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<string> {
    const signals = [AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])];
    try {
      const response = await fetch(urlOf(path), { headers, signal: AbortSignal.any(signals), credentials: "omit" });
      const text = await response.text();
      if (!response.ok) {
        throw failureOf(response.status, text);
      }
      return text;
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof NodeError ? error : new NodeError("The node does not respond.", "UNREACHABLE");
    }
  }

  const askText = async (path: string, signal?: AbortSignal): Promise<string> =>
    await get(path, await session.headers(), signal);
  return {
    session,
    urlOf,
    askText,
    ask: async <Answer>(path: string, signal?: AbortSignal) => JSON.parse(await askText(path, signal)) as Answer,
  };
}

function failureOf(status: number, text: string): NodeError {
  try {
    const { error, errorCode } = JSON.parse(text) as { error: unknown; errorCode: unknown };
    if (typeof error === "string") {
      return new NodeError(error, String(errorCode));
    }
  } catch {
    // What stands before the node answers in words of its own.
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
      (typeof value === "string" ? [value] : (value ?? [])).map((one) => [name, one]),
    ),
  );
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`;
}
