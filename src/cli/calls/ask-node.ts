/**
 * Asking a running node over HTTP, for the commands that do. By node:http: fetch costs each command 10 MB, and ends a
 * process without a word where the other side closes the connection at the wrong time.
 */
import { type IncomingMessage, request as requestHttp, type RequestOptions } from "node:http";
import { ExitError, exitCodes } from "../usage/errors.js";
import { defaultNode } from "../usage/flags.js";

/** How long nothing may move, and how long an answer may take in all. */
const timeouts = { idleMs: 5_000, totalMs: 60_000 };
/** More than a node gives in one answer. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** A request to a node; GET without a body when left out. */
export interface NodeRequest {
  /** Sent as JSON, with POST. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether any certificate will do: it is a node of this machine, which is told nothing. */
  readonly takesAnyCertificate?: boolean;
}

/** What a node answered. */
export interface NodeAnswer {
  readonly status: number;
  /** JSON. */
  readonly text: string;
  /** The node's own time, from its header Date; in milliseconds, whole seconds. */
  readonly dateMs: number;
}

/**
 * Asks the node for a path.
 *
 * @throws ExitError with code 3 when the node cannot be reached or answers something else.
 */
export async function askNode(node: string, path: string, request: NodeRequest = {}): Promise<NodeAnswer> {
  const url = nodeUrl(node, path);
  try {
    const { response, text } = await exchange(url, request);
    const status = response.statusCode!;
    checkIsNode(response, text);
    return { status, text, dateMs: Date.parse(response.headers.date ?? "") };
  } catch (error) {
    throw new ExitError(`No node answers at ${node}: ${whyNot(error)}.`, exitCodes.unreachable);
  }
}

/**
 * A path of a node.
 *
 * @throws ExitError with code 2 when what names the node is no URL.
 */
export function nodeUrl(node: string, path: string): URL {
  const url = URL.canParse(path, node) ? new URL(path, node) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new ExitError(`--node must be a URL such as ${defaultNode}, not "${node}".`, exitCodes.usage);
  }
  return url;
}

/**
 * Asks the node for what is there.
 *
 * @throws ExitError with code 1 and the node's own sentence and reason when it refuses.
 */
export async function askSuccessfully(node: string, path: string, request?: NodeRequest): Promise<string> {
  const { status, text } = await askNode(node, path, request);
  if (status >= 400) {
    throw refusal(status, text);
  }
  return text;
}

/** What the node says where it refuses, with code 1. */
export function refusal(status: number, text: string): ExitError {
  const { error = `status ${status}`, errorCode } = readFailure(text);
  return new ExitError(`The node refuses: ${error} (${errorCode ?? status})`, exitCodes.failed, errorCode);
}

/** What is in the way may answer for the node, with anything. */
function readFailure(text: string): { readonly error?: string; readonly errorCode?: string } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

/** Resolves with a whole answer, or rejects: whatever the other side does, one of the two comes. */
async function exchange(url: URL, { body, headers, takesAnyCertificate }: NodeRequest) {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const options: RequestOptions & { rejectUnauthorized?: boolean } = {
    ...(takesAnyCertificate === true && { rejectUnauthorized: false }),
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
  // TLS is loaded where it is spoken.
  const open = url.protocol === "https:" ? (await import("node:https")).request : requestHttp;
  return await new Promise<{ response: IncomingMessage; text: string }>((resolve, reject) => {
    const request = open(url, options);
    const closed = (): void => reject(new Error("it closed the connection before its whole answer had come"));
    request.on("timeout", () => request.destroy(new Error(`no answer within ${timeouts.idleMs / 1000} s`)));
    request.on("error", reject);
    request.on("close", closed);
    request.on("response", (response) => {
      // What could not be sent any more matters no longer: there is an answer.
      request.off("error", reject).on("error", () => undefined);
      request.off("close", closed);
      readWhole(response).then((text) => resolve({ response, text }), reject);
    });
    request.end(content);
  });
}

async function readWhole(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) {
      throw new Error(`its answer is larger than ${maxAnswerBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function checkIsNode({ statusCode, headers }: IncomingMessage, text: string): void {
  if (statusCode! >= 300 && statusCode! < 400) {
    throw new Error(`it sends elsewhere, to ${headers.location ?? "nowhere"}; name that with --node`);
  }
  try {
    JSON.parse(text);
  } catch {
    throw new Error(`what answers there is not a node (status ${statusCode})`);
  }
}

/** Why there is no answer, to go on with after a colon. */
export function whyNot(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
      return "the connection is refused";
    case "ECONNRESET":
    case "EPIPE":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return "it closed the connection before its whole answer had come";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name of its host is not known (${code})`;
    case "ABORT_ERR":
      return `no whole answer within ${timeouts.totalMs / 1000} s`;
    default:
      return code?.startsWith("HPE_") === true
        ? `what answers there does not speak HTTP (${code})`
        : ((error.message || code) ?? error.name);
  }
}
