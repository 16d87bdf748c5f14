/** Requests over HTTP/2, by plain node:http2: it costs less than a client of gRPC. */
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";

/** What is sent over HTTP/2. */
export interface Http2Request {
  /** Pseudo headers among them. */
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Buffer;
}

/** What came back. */
export interface Http2Answer {
  readonly headers: IncomingHttpHeaders;
  /** None where the headers end the answer. */
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: Buffer;
}

/** A gRPC call with an empty message. */
export function grpcCall(path: string, metadata: Readonly<Record<string, string>> = {}): Http2Request {
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...metadata };
  return { headers, body: Buffer.alloc(5) };
}

/** Connects over cleartext. */
export async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`);
  await once(session, "connect");
  return session;
}

/** Asks, and resolves when the answer is complete. Rejects when the stream is cut off. */
export async function askHttp2(session: ClientHttp2Session, { headers, body }: Http2Request): Promise<Http2Answer> {
  return await new Promise((resolve, reject) => {
    const stream = session.request(headers);
    const chunks: Buffer[] = [];
    let answered: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders | undefined;
    stream.on("response", (received) => (answered = received));
    stream.on("trailers", (received: IncomingHttpHeaders) => (trailers = received));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("end", () => resolve({ headers: answered, trailers, body: Buffer.concat(chunks) }));
    if (body === undefined) {
      stream.end();
    } else {
      stream.end(body);
    }
  });
}

/** What is wrong with an answer; undefined where it is the one that was hoped for, in any protocol. */
export function faultOf({ headers, trailers }: Pick<Http2Answer, "headers" | "trailers">): string | undefined {
  const status = String(headers[":status"]);
  if (status !== "200") {
    return status;
  }
  const isGrpc = /^application\/grpc(?!-web)/.test(headers["content-type"] ?? "");
  const code = String((trailers ?? headers)["grpc-status"]);
  return isGrpc && code !== "0" ? `grpc-status ${code}` : undefined;
}
