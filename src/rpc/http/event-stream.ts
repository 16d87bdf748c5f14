/**
 * A stream of messages over plain HTTP: events for browsers (text/event-stream), or lines for everybody else
 * (application/jsonl). Every rpc that streams says something at once, so that its answer begins with its first message, and
 * what fails before that is an ordinary failure.
 */
import { type DescField, type DescMessage, type DescOneof, getOption, ScalarType } from "@bufbuild/protobuf";
import { cursor } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { jsonEncoder, jsonFieldEncoder } from "../codec/json-encoder.js";
import { corsHeaders } from "../exchange/cors.js";
import type { Exchange } from "../exchange/exchange.js";
import { errorBody } from "../exchange/responses.js";
import { nextTick } from "../exchange/pacing.js";
import { writeCharged } from "../exchange/write-charged.js";
import { toReportedError, type Permit, type ProtocolDeps } from "../gate.js";
import type { ServedMethod } from "../service.js";
import type { HttpRoute } from "./http-rule.js";

/** How messages stand in the body. */
interface Form {
  readonly contentType: string;
  /** A message, or the failure that ends the stream. */
  write(json: string, event: string | undefined, id?: string): string;
  /** What may stand between messages. */
  readonly pause: string;
}

/** The media types that streams have. */
export const streamTypes = ["text/event-stream", "application/jsonl"] as const;

const events: Form = {
  contentType: `${streamTypes[0]}; charset=utf-8`,
  write: (json, event, id) => `${line("event", event)}${line("id", id)}data: ${json}\n\n`,
  pause: ":\n\n",
};

const lines: Form = {
  contentType: `${streamTypes[1]}; charset=utf-8`,
  write: (json) => `${json}\n`,
  pause: "\n",
};

function line(name: string, value: string | undefined): string {
  return value === undefined || value === "" ? "" : `${name}: ${value}\n`;
}

/** How often something is sent, at least: proxies close what is silent for a minute. */
const pauseMs = 15_000;

/** The event of the failure that ends a stream; `error` is what browsers call a lost connection. */
const failureEvent = "failure";

/** Sends messages until there are no more of them, or nobody is there to read them. */
export type SendStream = (exchange: Exchange, lease: Permit, messages: AsyncIterable<object>) => Promise<void>;

/** Compiles how the messages of an rpc are sent. */
export function compileStream(
  { desc }: ServedMethod,
  { responseField }: HttpRoute,
  deps: Pick<ProtocolDeps, "onInternalError">,
): SendStream {
  const encode = responseField === undefined ? jsonEncoder(desc.output) : jsonFieldEncoder(responseField);
  const eventOf = compileEvent(desc.output);
  const idOf = compileId(desc.output);

  return async (exchange, lease, messages) => {
    const form = formFor(exchange.header("accept"));
    const out = openBody(exchange, lease, form.contentType);
    const pauses = setInterval(() => out.pause(form.pause), pauseMs);
    try {
      for await (const message of messages) {
        // Each is encoded in a turn of its own, since nobody knows how large it is.
        await nextTick();
        await out.write(form.write(encode(message), eventOf(message), idOf(message)));
        if (exchange.isClosed) {
          return;
        }
      }
      lease.recordOutcome();
    } catch (error) {
      if (!exchange.headersSent) {
        throw error;
      }
      const failure = toReportedError(error, exchange.requestId, deps);
      lease.recordOutcome(failure);
      await out.write(form.write(errorBody(failure), failureEvent));
    } finally {
      clearInterval(pauses);
    }
    out.end();
  };
}

/** Lines for who asks for them, events for everybody else. */
function formFor(accept: string | undefined): Form {
  return accept !== undefined && /\bapplication\/(jsonl|x-ndjson)\b/i.test(accept) ? lines : events;
}

/** The body of an answer, which begins with the first piece of it. */
function openBody(exchange: Exchange, lease: Permit, contentType: string) {
  let isWriting = false;

  function begin(): void {
    // Proxies are not to keep it, nor to hold it back.
    const headers = ["Content-Type", contentType, "Cache-Control", "no-store", "X-Accel-Buffering", "no"];
    exchange.begin(200, [...headers, "X-Request-Id", exchange.requestId, ...corsHeaders, ...lease.headers]);
  }

  return {
    /** Writes a piece; resolves when it is gone. */
    async write(text: string): Promise<void> {
      isWriting = true;
      await writeCharged(exchange, lease, Buffer.from(text), begin);
      isWriting = false;
    },
    /** Writes so that something comes, where nothing else does. */
    pause(text: string): void {
      if (exchange.headersSent && !exchange.isClosed && !isWriting) {
        void exchange.write(Buffer.from(text));
      }
    },
    end(): void {
      begin();
      exchange.finish();
    },
  };
}

/** The id of an event says where it is in the stream, where something does. */
function compileId(output: DescMessage): (message: object) => string | undefined {
  const name = cursorOf(output)?.localName;
  return name === undefined ? () => undefined : (message) => (message as Readonly<Record<string, string>>)[name];
}

/**
 * The field that says where a message is, or after which a stream goes on.
 *
 * @throws Error when it is not a string.
 */
function cursorOf({ fields }: DescMessage): DescField | undefined {
  const field = fields.find((one) => getOption(one, cursor));
  if (field !== undefined && field.scalar !== ScalarType.STRING) {
    throw new Error(`${field.toString()} is a cursor, and not a string.`);
  }
  return field;
}

/** Has a stream go on where its reader was: a browser says so by itself, and more recently than the URL does. */
export function compileResume(input: DescMessage): (request: object, exchange: Pick<Exchange, "header">) => object {
  const name = cursorOf(input)?.localName;
  return (request, exchange) => {
    const last = name === undefined ? undefined : exchange.header("last-event-id");
    return last === undefined || last === "" ? request : { ...request, [name!]: last };
  };
}

/** The event of a message is the case of its oneof, where it has one. */
function compileEvent({ oneofs: [oneof] }: DescMessage): (message: object) => string | undefined {
  return oneof === undefined ? () => undefined : (message) => caseOf(message, oneof);
}

function caseOf(message: object, { localName, fields }: DescOneof): string | undefined {
  const { case: name } = (message as Readonly<Record<string, { readonly case?: string }>>)[localName] ?? {};
  return fields.find((field) => field.localName === name)?.jsonName;
}
