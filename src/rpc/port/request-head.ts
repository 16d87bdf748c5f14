/**
 * Requests that are rejected before any protocol sees them: heads that HTTP forbids, and errors of the parser. Each gets
 * the common error body, a request ID and a line in the log.
 */
import { STATUS_CODES } from "node:http";
import { errorCatalog, RpcError } from "../errors.js";
import type { Exchange, HttpResponse } from "../exchange/exchange.js";

/** Host and port of a URL (RFC 3986, section 3.2), without the comma, which separates merged Host lines. */
const hostForm = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i;

/** Returns the error of a request whose head HTTP forbids or the node does not support; undefined for all others. */
export function checkHead(exchange: Exchange): RpcError | undefined {
  const { hosts } = exchange;
  if (hosts.length !== 1 && exchange.requiresHost) {
    return invalid(`The request has ${hosts.length} Host headers; send exactly one.`);
  }
  if (hosts.some((host) => !hostForm.test(host))) {
    return invalid("The Host header is not a host with an optional port.");
  }
  const coding = exchange.header("transfer-encoding");
  if (coding !== undefined && coding.toLowerCase() !== "chunked") {
    return new RpcError("NOT_IMPLEMENTED", "The only supported Transfer-Encoding is chunked.");
  }
  const expectation = exchange.header("expect");
  if (expectation !== undefined && expectation.toLowerCase() !== "100-continue") {
    return invalid("The only supported expectation is 100-continue; leave out the Expect header.", 417);
  }
  return undefined;
}

/** Returns the error of a request that the parser of HTTP/1.1 rejected. */
export function toParserError({ code }: NodeJS.ErrnoException): RpcError {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new RpcError("HEADERS_TOO_LARGE", "The request line and headers are too large; the limit is 16 KiB.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new RpcError("REQUEST_TIMEOUT", "The request did not arrive in time.");
    default:
      return invalid("The request is not valid HTTP.");
  }
}

/** Formats the last response on a socket of HTTP/1.1, to a request that never became an exchange. */
export function formatResponse({ status, headers, body = "" }: HttpResponse): string {
  const all = [...headers, "Content-Length", String(Buffer.byteLength(body)), "Connection", "close"];
  const lines = all.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${all[i + 1]}\r\n`] : []));
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n${lines.join("")}\r\n${String(body)}`;
}

function invalid(message: string, httpStatus = 400): RpcError {
  return new RpcError("INVALID_REQUEST", message, undefined, [], { ...errorCatalog.INVALID_REQUEST, httpStatus });
}
