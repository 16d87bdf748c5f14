/**
 * HTTP client of the commands that query a running node. It uses node:http, since fetch costs each command 10 MB of
 * memory. Furthermore, fetch ends the process silently if the server closes the connection at the wrong time.
 */
import { type IncomingMessage, request as requestHttp } from "node:http";
import { certificateProblem, describeCertificateError } from "../../base/errors/certificate-error.js";
import { isPlainResponse } from "../../base/errors/plain-response.js";
import { InputError } from "../../base/errors/start-error.js";
import { ExitError, exitCodes, unreachable } from "../usage/errors.js";
import { collect } from "../usage/files.js";
import { exampleUrl, type PageFlags } from "../usage/flags.js";
import { tlsTrust, trustFlag } from "./authorities.js";

/** Limits on the idle time of a connection and on the duration of a response. */
const timeouts = { idleMs: 5_000, totalMs: 60_000 };
/** Limit on the size of a response in bytes; a node sends less. */
const maxResponseBytes = 64 * 1024 * 1024;

export interface NodeRequest {
  /** Body, sent as JSON with POST. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** True if any certificate is accepted, for requests without secrets to a node on this machine. */
  readonly acceptsAnyCertificate?: boolean;
}

interface SendOptions {
  readonly idleMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface NodeResponse {
  readonly status: number;
  readonly text: string;
  /** Clock of the node from the header Date, in milliseconds with a resolution of 1 s. */
  readonly dateMs: number;
}

/**
 * Requests a path from the node. Throws ExitError with code 3 if the node is unreachable or the responder is not a
 * node.
 */
export async function requestNode(node: string, path: string, request: NodeRequest = {}): Promise<NodeResponse> {
  const url = nodeUrl(node);
  try {
    const response = await send(url, path, { ...request, signal: AbortSignal.timeout(timeouts.totalMs) });
    const text = (await collect(response, maxResponseBytes))?.toString("utf8");
    if (text === undefined) {
      throw new Error(`its response is larger than ${maxResponseBytes} bytes`);
    }
    checkIsNode(response, text);
    return { status: response.statusCode!, text, dateMs: Date.parse(response.headers.date ?? "") };
  } catch (error) {
    throw connectionFailure(node, error);
  }
}

/** Returns the URL of the node. Throws InputError if `node` is not an HTTP URL. */
export function nodeUrl(node: string): URL {
  const url = URL.canParse(node) ? new URL(node) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InputError(`--node must be a URL such as ${exampleUrl}, not "${node}".`);
  }
  return url;
}

/**
 * Requests a path and returns the text of a successful response. Throws ExitError with code 1 and the node's message if
 * the node rejects the request; code 3 as `requestNode`.
 */
export async function requestOk(node: string, path: string, request?: NodeRequest): Promise<string> {
  const { status, text } = await requestNode(node, path, request);
  if (status >= 400) {
    throw rejectionError(status, text);
  }
  return text;
}

/** Fields of GET /health that commands show. */
export interface HealthBody {
  version: string;
  version_name: string;
  accepting: boolean;
  mempool_size: number | null;
  uptime_s: number;
  status: "ok" | "degraded" | "dormant" | "failing";
  boot: Record<"steps_total" | "steps_ready" | "steps_failed" | "steps_skipped", number> & {
    complete: boolean;
    current: string | null;
  };
  subsystems: Record<string, SubsystemBody>;
  ports: Partial<Record<string, { requested: number; actual: number; drifted: boolean }>>;
  main_loop: { heartbeat_age_s: number | null; iterations_total: number; exited: boolean; exit_reason: string | null };
  errors: { uncaught_total: number; unhandled_rejection_total: number };
}

interface SubsystemBody {
  status: string;
  since: number | null;
  lastError: { message: string } | null;
  extra?: {
    reason?: string;
    sync?: { block: number; targetBlock: number; blocks_per_s: number; left_s: number | null };
    snapshot?: { block: number; done_bytes: number; total_bytes: number; left_s: number | null };
  };
}

/**
 * Requests the health of the node. The status is 503 if the node is failing. Throws ExitError with code 1 if the node
 * rejects the request; code 3 as `requestNode`, or if the body has no health.
 */
export async function requestHealth(
  node: string,
  request?: NodeRequest,
): Promise<NodeResponse & { readonly health: HealthBody }> {
  const response = await requestNode(node, "/health", request);
  const { status, text } = response;
  const health = Object(JSON.parse(text)) as HealthBody;
  if (!Object.hasOwn(health, "subsystems")) {
    throw status >= 400
      ? rejectionError(status, text)
      : unreachable(node, `the server there is not a node (status ${status})`);
  }
  return { ...response, health };
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

/**
 * Sends a request for a path, as it is: a URL would resolve the segments `.` and `..`, which are names of fields.
 * Resolves with the head of every response; its status may be an error. Throws Error if no response
 * arrives. No other end leaves the promise pending.
 */
export async function send(
  url: URL,
  path: string,
  { body, headers, acceptsAnyCertificate = false, idleMs = timeouts.idleMs, signal }: NodeRequest & SendOptions = {},
): Promise<IncomingMessage> {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const options = {
    ...{ path, agent: false, timeout: idleMs, rejectUnauthorized: !acceptsAnyCertificate, signal },
    method: content === undefined ? "GET" : "POST",
    headers: {
      ...headers,
      ...(content !== undefined && {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(content),
      }),
    },
  };
  // Load TLS only for https.
  const isTls = url.protocol === "https:";
  const open = isTls ? (await import("node:https")).request : requestHttp;
  const trust = isTls ? await tlsTrust() : {};
  return await new Promise((resolve, reject) => {
    const request = open(url, { ...options, ...trust });
    request.on("timeout", () => request.destroy(new Error(`no response within ${idleMs / 1000} s`)));
    request.on("error", (error) =>
      reject(!isTls && isClosed(error) ? new Error(`${closedEarly}; ${wrongPort}`) : error),
    );
    request.on("close", () => reject(new Error(closedEarly)));
    request.on("response", resolve);
    request.end(content);
  });
}

const closedEarly = "it closed the connection before the response was complete";
/** Advice for a server that closes a connection without TLS before it responds. */
const wrongPort = "if this port uses TLS, give https://; if it is the internal port, give the public one";

function isClosed({ code }: NodeJS.ErrnoException): boolean {
  return code === "ECONNRESET" || code === "EPIPE" || code === "ERR_STREAM_PREMATURE_CLOSE";
}

/** Throws an error unless the response may come from a node: it is JSON, and not a redirect. */
function checkIsNode({ statusCode, headers }: IncomingMessage, text: string): void {
  if (statusCode! >= 300 && statusCode! < 400) {
    throw new Error(`it redirects to ${headers.location ?? "no location"}; give that address instead`);
  }
  try {
    JSON.parse(text);
  } catch {
    throw new Error(`the server there is not a node (status ${statusCode})`);
  }
}

/** Returns the error of a node without a usable response, or with a certificate that is not trusted. */
export function connectionFailure(node: string, error: unknown): ExitError {
  const rejected = describeCertificateError(node, error, trustFlag);
  return rejected === undefined
    ? unreachable(node, describeConnectionError(error))
    : new ExitError(rejected, exitCodes.unreachable);
}

/** Returns the reason for a missing or incomplete response, as the end of an error message. */
export function describeConnectionError(error: unknown): string {
  const rejected = certificateProblem(error, trustFlag);
  if (rejected !== undefined) {
    return `its certificate is not trusted: ${rejected.found}; ${rejected.remedy}`;
  }
  if (!(error instanceof Error)) {
    return String(error);
  }
  if (isPlainResponse(error)) {
    return "it answers without TLS; give its address with http://";
  }
  if (isClosed(error)) {
    return closedEarly;
  }
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
      return "connection refused";
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

/** Returns the path of a page of a list. `filters` are query parameters; undefined ones are omitted. */
export function pagePath(
  path: string,
  { limit, pageToken }: PageFlags,
  filters: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = { ...filters, pageSize: limit?.toString(), pageToken };
  const parameters = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${path}?${new URLSearchParams(parameters).toString()}`;
}

export interface PeerBody {
  readonly connection: { string: string };
  readonly identity: string;
  readonly verification: { status: boolean; message: string | null };
  readonly sync: { status: boolean; block: number | null };
  readonly status: { online: boolean; timestamp: number | null; ready: boolean };
}

/** Limit on the number of requests for one list, so that a hostile node cannot respond forever. */
const maxPages = 64;

/**
 * Returns all peers that the node knows. A long list takes several requests. Throws ExitError with code 1 if the node
 * rejects a request or its list does not end; code 3 as `requestNode`.
 */
export async function listPeers(node: string, request?: NodeRequest): Promise<PeerBody[]> {
  const peers: PeerBody[] = [];
  for (let page = 0; page < maxPages; page++) {
    const text = await requestOk(node, `/peerlist?offset=${peers.length}`, request);
    const part = JSON.parse(text) as PeerBody[];
    if (part.length === 0) {
      return peers;
    }
    peers.push(...part);
  }
  throw new ExitError(`The peer list of ${node} has more than ${maxPages} pages.`);
}
