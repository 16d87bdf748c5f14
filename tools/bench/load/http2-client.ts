/** Sends requests over HTTP/2 with node:http2, which costs less CPU time than a gRPC client. */
import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";

/** Request over HTTP/2. */
export interface Http2Request {
  /** Headers, including pseudo headers. */
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Buffer;
}

/** Response over HTTP/2. */
export interface Http2Answer {
  readonly headers: IncomingHttpHeaders;
  /** Trailers; undefined if the response ends with its headers. */
  readonly trailers: IncomingHttpHeaders | undefined;
  readonly body: Buffer;
}

/** Creates a gRPC call with an empty message. */
export function grpcCall(path: string, metadata: Readonly<Record<string, string>> = {}): Http2Request {
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...metadata };
  return { headers, body: Buffer.alloc(5) };
}

/** Connects without TLS. */
export async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`);
  await once(session, "connect");
  return session;
}

/** Sends a request. Resolves with the complete response; rejects if the stream is reset. */
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

/** Returns an error message unless the response is a success, in any protocol. */
export function faultOf({ headers, trailers }: Pick<Http2Answer, "headers" | "trailers">): string | undefined {
  const status = String(headers[":status"]);
  if (status !== "200") {
    return status;
  }
  const isGrpc = /^application\/grpc(?!-web)/.test(headers["content-type"] ?? "");
  const code = String((trailers ?? headers)["grpc-status"]);
  return isGrpc && code !== "0" ? `grpc-status ${code}` : undefined;
}
