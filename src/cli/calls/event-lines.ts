/** Stream of a node's events. It reconnects after a lost connection and resumes after the last event. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ExitError, exitCodes } from "../usage/errors.js";
import { describeConnectionError, nodeUrl, rejectionError } from "./request-node.js";
import { linesOf, maxLineBytes, openStream } from "./stream-lines.js";

/** Source and filter of the events, and the identity of the reader. */
export interface EventStreamOptions {
  readonly node: string;
  /** Query parameters of `GET /events`. */
  readonly query: URLSearchParams;
  /** Returns the headers of a request. Called for each request, since headers that prove an identity expire. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  /** Called with the reason when the connection is lost, and with undefined when it is restored. */
  readonly onConnectionChange: (lostReason: string | undefined) => void;
}

/** Message of the stream. */
export interface EventLine {
  /** Unchanged JSON of the node. */
  readonly text: string;
  readonly message: EventBody;
}

/** Parsed message. An error message carries the reason for the end of the stream. */
export interface EventBody {
  readonly cursor: string;
  readonly blockNumber: number;
  readonly [event: string]: unknown;
  readonly success?: boolean;
  readonly error?: string;
  readonly errorCode?: string;
}

const [firstWaitMs, maxWaitMs] = [250, 10_000];

/** Returns true for the status of an error after which the same request may succeed. */
const isTransient = (status: number): boolean => status === 429 || status >= 500;

/**
 * Yields events until the caller stops reading.
 *
 * @throws ExitError with code 3 if the first connection fails; code 1 if the node rejects the request.
 */
export async function* watchEvents({
  node,
  query,
  headers,
  onConnectionChange,
}: EventStreamOptions): AsyncGenerator<EventLine, never> {
  const parameters = new URLSearchParams(query);
  let hasStarted = false;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, 2 * waitMs)) {
    let lostReason: string;
    try {
      const response = await openStream(nodeUrl(node, `/events?${parameters.toString()}`), {
        headers: await headers(),
      });
      if (response.statusCode !== 200) {
        throw new RejectedError(response.statusCode!, await readBody(response));
      }
      if (hasStarted) {
        onConnectionChange(undefined);
      }
      hasStarted = true;
      for await (const text of linesOf(response)) {
        const message = JSON.parse(text) as EventBody;
        if (message.success === false) {
          throw new RejectedError(message.errorCode === "PRUNED" ? 410 : 503, text);
        }
        waitMs = firstWaitMs;
        parameters.set("from", message.cursor);
        yield { text, message };
      }
      lostReason = "it ended the stream";
    } catch (error) {
      if (error instanceof ExitError) {
        throw error;
      }
      if (error instanceof RejectedError) {
        const rejection = rejectionError(error.status, error.body);
        if (!hasStarted || !isTransient(error.status)) {
          throw rejection;
        }
        lostReason = rejection.message;
      } else {
        lostReason = describeConnectionError(error);
        if (!hasStarted) {
          throw new ExitError(`No node responds at ${node}: ${lostReason}.`, exitCodes.unreachable);
        }
      }
    }
    onConnectionChange(lostReason);
    await sleep(waitMs);
  }
}

/** Error for a stream that the node rejects or ends. */
class RejectedError extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(body);
  }
}

/** Returns the body of an error response, cut off once it exceeds the limit of a line. */
async function readBody(response: IncomingMessage): Promise<string> {
  let text = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    text += chunk;
    if (text.length > maxLineBytes) {
      break;
    }
  }
  return text;
}
