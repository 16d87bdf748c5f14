/** A client of gRPC-Web with base64 bodies, as in browsers without byte streams. */
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { grpcMessage } from "./http2-frames.js";
import type { RpcClient } from "./rpc-clients.js";
import { readText, type TransportClient } from "./transports.js";

const contentType = "application/grpc-web-text";
const trailerFlag = 0x80;

/** Creates a client that also closes its transport. */
export function createGrpcWebText(transport: TransportClient): RpcClient {
  return {
    async call(method, request, headers) {
      const answers: Message[] = [];
      for await (const message of exchange(transport, method, request, { headers })) {
        answers.push(message);
      }
      if (answers.length !== 1) {
        throw new Error(`${answers.length} messages for one.`);
      }
      return answers[0]!;
    },
    stream: (method, request, signal) => exchange(transport, method, request, { signal }),
    close: () => transport.close(),
  };
}

async function* exchange(
  transport: TransportClient,
  method: DescMethod,
  request: object,
  { headers = {}, signal }: { headers?: Readonly<Record<string, string>> | undefined; signal?: AbortSignal },
): AsyncGenerator<Message> {
  const message = toBinary(method.input, create(method.input, request as never));
  const response = await transport.open(
    `/${method.parent.typeName}/${method.name}`,
    {
      method: "POST",
      body: grpcMessage(message).toString("base64"),
      headers: { "Content-Type": contentType, Accept: contentType, "X-Grpc-Web": "1", ...headers },
    },
    signal,
  );
  const type = String(response.headers["content-type"]);
  if (response.status !== 200 || !type.startsWith(contentType)) {
    throw new Error(`HTTP ${response.status}, ${type}: ${await readText(response)}`);
  }
  let trailers: Headers | undefined;
  for await (const [flagByte, bytes] of messagesOf(response.body)) {
    if (flagByte === trailerFlag) {
      trailers = readTrailers(bytes);
    } else {
      yield fromBinary(method.output, bytes);
    }
  }
  throwStatus(trailers ?? new Headers(response.headers as Record<string, string>));
}

/** Yields messages with their flags. Decodes four characters at a time, because each piece of base64 may be padded. */
async function* messagesOf(body: AsyncIterable<Buffer>): AsyncGenerator<[flagByte: number, bytes: Buffer]> {
  let [text, bytes]: [string, Buffer] = ["", Buffer.alloc(0)];
  for await (const chunk of body) {
    text += chunk.toString("latin1");
    const complete = text.length - (text.length % 4);
    const groups = text.slice(0, complete).match(/[A-Za-z0-9+/]+={0,2}/g) ?? [];
    text = text.slice(complete);
    bytes = Buffer.concat([bytes, ...groups.map((group) => Buffer.from(group, "base64"))]);
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
      const end = 5 + bytes.readUInt32BE(1);
      yield [bytes[0]!, bytes.subarray(5, end)];
      bytes = bytes.subarray(end);
    }
  }
  if (text.length + bytes.length > 0) {
    throw new Error("The body ends within a message.");
  }
}

function readTrailers(bytes: Buffer): Headers {
  const lines = bytes.toString("latin1").split("\r\n").filter(Boolean);
  return new Headers(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
}

/** Throws unless the status is 0. */
function throwStatus(trailers: Headers): void {
  const error = findTrailerError(trailers);
  if (error !== undefined) {
    throw error;
  }
  if (!trailers.has("grpc-status")) {
    throw new ConnectError("There is no grpc-status.", Code.Internal);
  }
}
