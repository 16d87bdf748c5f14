import type { IncomingMessage } from "node:http";
import { Failure } from "../errors.js";

/**
 * Reads a request body as UTF-8 text.
 *
 * @throws Failure PAYLOAD_TOO_LARGE as soon as more than `maxBytes` are announced or sent; INVALID_REQUEST when the
 * caller goes away before the end.
 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    throw tooLarge(maxBytes);
  }
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    const onData = (chunk: Buffer): void => {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) {
        request.off("data", onData);
        request.resume();
        reject(tooLarge(maxBytes));
        return;
      }
      chunks.push(chunk);
    };
    request.on("data", onData);
    request.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    request.once("close", () => reject(new Failure("INVALID_REQUEST", "The request body ended early.")));
  });
}

function tooLarge(maxBytes: number): Failure {
  const message = `The request body must not be larger than ${maxBytes} bytes.`;
  // What is still to come of the body is not worth reading.
  return new Failure("PAYLOAD_TOO_LARGE", message, undefined, ["Connection", "close"]);
}
