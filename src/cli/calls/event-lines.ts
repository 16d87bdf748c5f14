/**
 * The stream of a node's events, line by line, for as long as somebody wants it: a connection that is lost is made again,
 * and the stream goes on where it was.
 */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ExitError, exitCodes } from "../usage/errors.js";
import { nodeUrl, refusal, whyNot } from "./ask-node.js";
import { linesOf, maxLineBytes, openStream } from "./stream-lines.js";

/** What is watched, and as whom. */
export interface EventsWatch {
  readonly node: string;
  /** Parameters of `GET /events`. */
  readonly query: URLSearchParams;
  /** Headers of each request: those that prove an identity hold for a while alone. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  /** Hears that the connection is lost, and why; and that it is there again (undefined). */
  readonly onLost: (why: string | undefined) => void;
}

/** A message of the stream. */
export interface EventLine {
  /** The node's own JSON. */
  readonly text: string;
  readonly message: EventBody;
}

/** The same, read; of a failure, why the stream ended. */
export interface EventBody {
  readonly cursor: string;
  readonly blockNumber: number;
  readonly [event: string]: unknown;
  readonly success?: boolean;
  readonly error?: string;
  readonly errorCode?: string;
}

const [firstWaitMs, maxWaitMs] = [250, 10_000];

/** These may be over in a while; any other failure says that what is asked for cannot be had. */
const isTransient = (status: number): boolean => status === 429 || status >= 500;

/**
 * Gives events until the caller has enough.
 *
 * @throws ExitError with code 3 when the node cannot be reached at first, with code 1 when it refuses.
 */
export async function* watchEvents({ node, query, headers, onLost }: EventsWatch): AsyncGenerator<EventLine, never> {
  const asked = new URLSearchParams(query);
  let hasBegun = false;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, 2 * waitMs)) {
    let why: string;
    try {
      const response = await openStream(nodeUrl(node, `/events?${asked.toString()}`), { headers: await headers() });
      if (response.statusCode !== 200) {
        throw new RefusedError(response.statusCode!, await readWhole(response));
      }
      if (hasBegun) {
        onLost(undefined);
      }
      hasBegun = true;
      for await (const text of linesOf(response)) {
        const message = JSON.parse(text) as EventBody;
        if (message.success === false) {
          throw new RefusedError(message.errorCode === "PRUNED" ? 410 : 503, text);
        }
        waitMs = firstWaitMs;
        asked.set("from", message.cursor);
        yield { text, message };
      }
      why = "it ended the stream";
    } catch (error) {
      if (error instanceof RefusedError && !isTransient(error.status)) {
        throw refusal(error.status, error.body);
      }
      if (error instanceof ExitError) {
        throw error;
      }
      why = error instanceof RefusedError ? refusal(error.status, error.body).message : whyNot(error);
      if (!hasBegun) {
        throw error instanceof RefusedError
          ? refusal(error.status, error.body)
          : new ExitError(`No node answers at ${node}: ${why}.`, exitCodes.unreachable);
      }
    }
    onLost(why);
    await sleep(waitMs);
  }
}

/** The node does not give the stream, or ends it. */
class RefusedError extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(body);
  }
}

async function readWhole(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of response as AsyncIterable<Buffer>) {
    text += piece.toString("utf8");
    if (text.length > maxLineBytes) {
      break;
    }
  }
  return text;
}
