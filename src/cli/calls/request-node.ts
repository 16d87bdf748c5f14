/**
 * HTTP client of the commands that query a running node. It uses node:http, since fetch costs each command 10 MB of
 * memory. Furthermore, fetch ends the process silently if the server closes the connection at the wrong time.
 */
import { type IncomingMessage, request as requestHttp, type RequestOptions } from "node:http";
import { ExitError, exitCodes } from "../usage/errors.js";
import { defaultNode } from "../usage/flags.js";

/** Limits on the idle time of a connection and on the duration of a response. */
const timeouts = { idleMs: 5_000, totalMs: 60_000 };
/** Limit on the size of a response in bytes; a node sends less. */
const maxResponseBytes = 64 * 1024 * 1024;

/** Request to a node. Default: GET without a body. */
export interface NodeRequest {
  /** Body, sent as JSON with POST. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if any certificate is accepted, for requests without secrets to a node on this machine. */
  readonly acceptsAnyCertificate?: boolean;
}

/** Response of a node. */
export interface NodeResponse {
  readonly status: number;
  /** Body: JSON. */
  readonly text: string;
  /** Clock of the node from the header Date, in milliseconds with a resolution of 1 s. */
  readonly dateMs: number;
}

/**
 * Requests a path from the node.
 *
 * @throws ExitError with code 3 if the node is unreachable or the responder is not a node.
 */
export async function requestNode(node: string, path: string, request: NodeRequest = {}): Promise<NodeResponse> {
  const url = nodeUrl(node, path);
  try {
    const { response, text } = await send(url, request);
    const status = response.statusCode!;
    checkIsNode(response, text);
    return { status, text, dateMs: Date.parse(response.headers.date ?? "") };
  } catch (error) {
    throw new ExitError(`No node responds at ${node}: ${describeConnectionError(error)}.`, exitCodes.unreachable);
  }
}

/**
 * Returns the URL of a path on the node.
 *
 * @throws ExitError with code 2 if `node` is not an HTTP URL.
 */
export function nodeUrl(node: string, path: string): URL {
  const url = URL.canParse(path, node) ? new URL(path, node) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new ExitError(`--node must be a URL such as ${defaultNode}, not "${node}".`, exitCodes.usage);
  }
  return url;
}

/**
 * Requests a path and returns the text of a successful response.
 *
 * @throws ExitError with code 1 and the node's message if the node rejects the request; code 3 as `requestNode`.
 */
export async function requestOk(node: string, path: string, request?: NodeRequest): Promise<string> {
  const { status, text } = await requestNode(node, path, request);
  if (status >= 400) {
    throw rejectionError(status, text);
  }
  return text;
}

/**
 * Requests the health of the node. The status is 503 if the node is failing.
 *
 * @throws ExitError with code 1 if the node rejects the request; code 3 as `requestNode`, or if the body has no health.
 */
export async function requestHealth(node: string, request?: NodeRequest): Promise<NodeResponse> {
  const response = await requestNode(node, "/health", request);
  const { status, text } = response;
  if (!Object.hasOwn(Object(JSON.parse(text)) as object, "subsystems")) {
    throw status >= 400
      ? rejectionError(status, text)
      : new ExitError(
          `No node responds at ${node}: the server there is not a node (status ${status}).`,
          exitCodes.unreachable,
        );
  }
  return response;
}

/** Returns an error with the message of a rejection by the node, and code 1. */
export function rejectionError(status: number, text: string): ExitError {
  const { error = `status ${status}`, errorCode } = readError(text);
  return new ExitError(`The node rejected the request: ${error} (${errorCode ?? status})`, exitCodes.failed, errorCode);
}

/** Parses an error body. A proxy may respond in place of the node, with any text. */
function readError(text: string): { readonly error?: string; readonly errorCode?: string } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

/** Sends a request. Settles in every case: resolves with a complete response, or rejects. */
async function send(url: URL, { body, headers, acceptsAnyCertificate }: NodeRequest) {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const options: RequestOptions & { rejectUnauthorized?: boolean } = {
    ...(acceptsAnyCertificate === true && { rejectUnauthorized: false }),
    agent: false,
    timeout: timeouts.idleMs,
    signal: AbortSignal.timeout(timeouts.totalMs),
    headers: {
      ...headers,
      ...(content !== undefined && {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(content),
      }),
    },
    ...(content !== undefined && { method: "POST" }),
  };
  // Load TLS only for https.
  const open = url.protocol === "https:" ? (await import("node:https")).request : requestHttp;
  return await new Promise<{ response: IncomingMessage; text: string }>((resolve, reject) => {
    const request = open(url, options);
    const onClose = (): void => reject(new Error("it closed the connection before the response was complete"));
    request.on("timeout", () => request.destroy(new Error(`no response within ${timeouts.idleMs / 1000} s`)));
    request.on("error", reject);
    request.on("close", onClose);
    request.on("response", (response) => {
      // A response has arrived, so errors while sending the rest of the request are irrelevant.
      request.off("error", reject).on("error", () => undefined);
      request.off("close", onClose);
      readBody(response).then((text) => resolve({ response, text }), reject);
    });
    request.end(content);
  });
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) {
      throw new Error(`its response is larger than ${maxResponseBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Throws an error unless the response may come from a node: it is JSON, and not a redirect. */
function checkIsNode({ statusCode, headers }: IncomingMessage, text: string): void {
  if (statusCode! >= 300 && statusCode! < 400) {
    throw new Error(`it redirects to ${headers.location ?? "no location"}; give that address with --node`);
  }
  try {
    JSON.parse(text);
  } catch {
    throw new Error(`the server there is not a node (status ${statusCode})`);
  }
}

/** Returns the reason for a missing or incomplete response, as the end of an error message. */
export function describeConnectionError(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
      return "connection refused";
    case "ECONNRESET":
    case "EPIPE":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return "it closed the connection before the response was complete";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `its host name does not resolve (${code})`;
    case "ABORT_ERR":
      return `no complete response within ${timeouts.totalMs / 1000} s`;
    default:
      return code?.startsWith("HPE_") === true
        ? `the server there does not speak HTTP (${code})`
        : ((error.message || code) ?? error.name);
  }
}
