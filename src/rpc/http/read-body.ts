import type { IncomingMessage } from "node:http";
import { Failure } from "../errors.js";

/** Most bytes of a request body over HTTP/1.1: room for a transaction with a document of 1 MiB, in base64. */
export const maxBodyBytes = 2 * 1024 * 1024;

/** {@link readBytes}, as UTF-8 text. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  return (await readBytes(request, maxBytes)).toString("utf8");
}

/**
 * Reads a request body.
 *
 * @throws Failure PAYLOAD_TOO_LARGE as soon as more than `maxBytes` are announced or sent; INVALID_REQUEST when the
 * caller goes away before the end.
 */
export async function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) {
    throw tooLarge(maxBytes);
  }
  const chunks = await readChunks(request, maxBytes);
  if (chunks.length > 1) {
    await takeTurn();
  }
  return Buffer.concat(chunks);
}

let lastTurn: Promise<void> = Promise.resolve();

/**
 * Large bodies are decoded and parsed one in each turn of the event loop, however many have arrived: what else arrives
 * waits for one of them, not for all.
 */
async function takeTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
  await lastTurn;
}

async function readChunks(request: IncomingMessage, maxBytes: number): Promise<Buffer[]> {
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
    request.once("end", () => resolve(chunks));
    request.once("close", () => reject(new Failure("INVALID_REQUEST", "The request body ended early.")));
  });
}

function tooLarge(maxBytes: number): Failure {
  const message = `The request body must not be larger than ${maxBytes} bytes.`;
  // What is still to come of the body is not worth reading.
  return new Failure("PAYLOAD_TOO_LARGE", message, undefined, ["Connection", "close"]);
}
