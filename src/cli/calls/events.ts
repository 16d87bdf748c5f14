/** Stream of a node's events. It reconnects after a lost connection and resumes after the last event. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { InputError } from "../../base/errors/start-error.js";
import { ExitError } from "../usage/errors.js";
import { collect } from "../usage/files.js";
import {
  connectionFailure,
  describeConnectionError,
  type NodeRequest,
  nodeUrl,
  rejectionError,
  send,
} from "./request-node.js";

/** Limit on silence in a stream: a node sends a message every 15 s. */
const idleMs = 45_000;
/** Limit on the length of a line and of an error response, longer than any message. */
const maxLineBytes = 16 * 1024 * 1024;
const [firstWaitMs, maxWaitMs] = [250, 10_000];

/** Yields the messages of a stream, one for each line, until the stream ends. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string, void> {
  let rest = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    if (rest.length > maxLineBytes) {
      throw new Error(`a message is longer than ${maxLineBytes} bytes`);
    }
    yield* lines.filter((line) => line !== "");
  }
}

/** Message of the stream. An error message carries the reason for the end of the stream. */
export interface EventBody {
  readonly cursor: string;
  readonly blockNumber: number;
  readonly progress?: object;
  readonly transaction?: {
    readonly hash: string;
    readonly outcome: string;
    readonly withheld: boolean;
    readonly sender?: string;
    readonly reason?: string;
  };
  readonly program?: { readonly storageAddress: string; readonly change: string; readonly fields: readonly string[] };
  readonly nullifier?: { readonly nullifierHash: string };
  readonly commitments?: { readonly commitments: readonly string[]; readonly root: string };
  readonly block?: { readonly hash: string; readonly transactionCount: number };
  readonly head?: { readonly statement: { readonly proposer: string } };
  readonly success?: boolean;
  readonly errorCode?: string;
}

class RejectedError extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(body);
  }
}

/**
 * Yields events until the caller stops reading.
 *
 * @param query Query parameters of `GET /events`.
 * @param headersOf Returns the headers of a request. Called for each, since headers that prove an identity expire.
 * @param onConnectionChange Called with the reason when the connection is lost, and with undefined when it is restored.
 * @throws ExitError with code 3 if the first connection fails; code 1 if the node rejects the request.
 */
export async function* watchEvents(
  node: string,
  query: URLSearchParams,
  headersOf: () => Promise<NodeRequest["headers"]>,
  onConnectionChange: (lostReason: string | undefined) => void,
): AsyncGenerator<{ readonly text: string; readonly message: EventBody }, never> {
  const parameters = new URLSearchParams(query);
  let hasStarted = false;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(maxWaitMs, 2 * waitMs)) {
    let lostReason = "it ended the stream";
    try {
      const url = nodeUrl(node);
      const headers = { ...(await headersOf()), Accept: "application/jsonl" };
      const response = await send(url, `/events?${parameters.toString()}`, { headers, idleMs });
      if (response.statusCode !== 200) {
        const body = await collect(response, maxLineBytes);
        throw new RejectedError(response.statusCode!, body?.toString("utf8") ?? "");
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
    } catch (error) {
      const failure = toExitError(error, node);
      const mayRecover = !(error instanceof RejectedError) || error.status === 429 || error.status >= 500;
      if (failure === error || !hasStarted || !mayRecover) {
        throw failure;
      }
      lostReason = error instanceof RejectedError ? failure.message : describeConnectionError(error);
    }
    onConnectionChange(lostReason);
    await sleep(waitMs);
  }
}

function toExitError(error: unknown, node: string): Error {
  if (error instanceof ExitError || error instanceof InputError) {
    return error;
  }
  return error instanceof RejectedError ? rejectionError(error.status, error.body) : connectionFailure(node, error);
}
