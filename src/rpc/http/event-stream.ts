/**
 * Message streams over plain HTTP: server-sent events for browsers (text/event-stream), or JSON lines
 * (application/jsonl). Streaming rpcs send their first message at once, and the response starts with it. An error
 * before that becomes a normal error response.
 */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { cursor } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { responseEncoder } from "../codec/json-encoder.js";
import { checkIfMatch } from "../exchange/caching.js";
import type { Exchange } from "../exchange/exchange.js";
import { corsHeaders, errorBody, streamHeaders } from "../exchange/responses.js";
import { paceMessage } from "../exchange/pacing.js";
import { toReportedError, type Permit, type ProtocolDeps } from "../gate.js";
import type { ServedMethod } from "../service.js";
import type { HttpRoute } from "./http-rule.js";
import { prefersLines } from "./negotiation.js";

/** Media types of streams. */
export const streamTypes = ["text/event-stream", "application/jsonl"] as const;

const events = {
  contentType: `${streamTypes[0]}; charset=utf-8`,
  /** Formats a message, or the error that ends the stream. */
  write: (json: string, event?: string, id?: string): Buffer =>
    Buffer.from(`${line("event", event)}${line("id", id)}data: ${json}\n\n`),
  /** Text that may be sent between messages. */
  keepAlive: Buffer.from(":\n\n"),
};

const lines: typeof events = {
  contentType: `${streamTypes[1]}; charset=utf-8`,
  write: (json) => Buffer.from(`${json}\n`),
  keepAlive: Buffer.from("\n"),
};

function line(name: string, value = ""): string {
  return value === "" ? "" : `${name}: ${value}\n`;
}

/** Longest interval without data, in milliseconds: proxies close connections that are silent for a minute. */
const keepAliveMs = 15_000;

/** Event name of the error that ends a stream. Browsers use the name `error` for a lost connection. */
const failureEvent = "failure";

/** Compiles the function that sends the messages of an rpc, until the stream ends or the client disconnects. */
export function compileStream(
  { desc }: ServedMethod,
  { responseField }: HttpRoute,
  deps: Pick<ProtocolDeps, "onInternalError">,
): (exchange: Exchange, permit: Permit, messages: AsyncIterable<object>) => Promise<void> {
  const encode = responseEncoder(desc.output, responseField);
  const eventOf = compileEvent(desc.output);
  const idOf = compileId(desc.output);

  return async (exchange, permit, messages) => {
    const { requestId } = exchange;
    checkIfMatch(exchange, undefined);
    const { contentType, write, keepAlive } = formatFor(exchange.header("accept"));
    let isWriting = false;
    function start(): void {
      const headers = ["Content-Type", contentType, ...streamHeaders, "X-Request-Id", requestId];
      exchange.start(200, [...headers, ...corsHeaders, ...permit.headers]);
    }
    async function send(bytes: Buffer): Promise<void> {
      isWriting = true;
      await exchange.writeReserved(permit, bytes, start);
      isWriting = false;
    }
    const keepAliveTimer = setInterval(() => {
      if (exchange.headersSent && !exchange.isClosed && !isWriting) {
        void exchange.write(keepAlive);
      }
    }, keepAliveMs);

    try {
      for await (const message of messages) {
        if (exchange.method === "HEAD") {
          // The first message shows that the stream would start.
          break;
        }
        await send(await paceMessage(() => write(encode(message), eventOf(message), idOf(message))));
        if (exchange.isClosed) {
          return;
        }
      }
      permit.recordOutcome();
    } catch (error) {
      if (!exchange.headersSent) {
        throw error;
      }
      const failure = toReportedError(error, requestId, deps);
      permit.recordOutcome(failure);
      await send(write(errorBody(failure), failureEvent));
    } finally {
      clearInterval(keepAliveTimer);
    }
    start();
    exchange.finish();
  };
}

/** Returns the JSON lines format if the client prefers it, otherwise server-sent events. */
function formatFor(accept: string | undefined): typeof events {
  return prefersLines(accept) ? lines : events;
}

/** Compiles the function that returns an event's id, the cursor of its message; undefined without a cursor. */
function compileId(output: DescMessage): (message: object) => string | undefined {
  const name = cursorOf(output)?.localName;
  return name === undefined ? () => undefined : (message) => (message as Readonly<Record<string, string>>)[name];
}

/**
 * Finds the field with the cursor: the position of a message, or the position after which a stream resumes.
 *
 * @throws Error if the field is not a string.
 */
function cursorOf({ fields }: DescMessage): DescField | undefined {
  const field = fields.find((candidate) => getOption(candidate, cursor));
  if (field !== undefined && field.scalar !== ScalarType.STRING) {
    throw new Error(`${field.toString()} is a cursor, and not a string.`);
  }
  return field;
}

/**
 * Compiles the function that resumes a stream from the `Last-Event-ID` header. Browsers send the header on reconnect,
 * so it is more recent than the cursor in the URL.
 */
export function compileResume(input: DescMessage): (request: object, exchange: Pick<Exchange, "header">) => object {
  const name = cursorOf(input)?.localName;
  return (request, exchange) => {
    const last = name === undefined ? undefined : exchange.header("last-event-id");
    return last === undefined || last === "" ? request : { ...request, [name!]: last };
  };
}

/** Compiles the function that returns an event's name: the case of the message's oneof, if any. */
function compileEvent({ oneofs: [oneof] }: DescMessage): (message: object) => string | undefined {
  const names = new Map<string | undefined, string>(oneof?.fields.map((field) => [field.localName, field.jsonName]));
  const key = oneof?.localName ?? "";
  return (message) => names.get((message as Readonly<Record<string, { case?: string } | undefined>>)[key]?.case);
}
