/** Limits on a response that no valid node exceeds. They protect the client from a node that sends without end. */
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";

const mebibyte = 1024 * 1024;

/** Limit in bytes on every response except the genesis: nodes send up to 4 MiB, plus the envelope of a block. */
export const maxResponseBytes = 5 * mebibyte;

/** Limit in bytes on the response with the genesis, a file of up to 16 MiB. */
export const maxGenesisBytes = 17 * mebibyte;

const genesisPath = `/${InfoService.typeName}/${InfoService.method.getGenesis.name}`;

/**
 * Returns the limit on a unary response, in bytes.
 *
 * @param url ends with the service and method, as in Connect.
 */
export function maxBytesFrom(url: string): number {
  return url.endsWith(genesisPath) ? maxGenesisBytes : maxResponseBytes;
}

/**
 * Starts a time limit that several calls share.
 *
 * @param timeoutMs in milliseconds; 0 for no limit.
 * @returns a function that returns the remaining time for the next call, at least 1 ms; 0 for no limit.
 */
export function startTimeout(timeoutMs: number): () => number {
  const endsAtMs = performance.now() + timeoutMs;
  return () => (timeoutMs > 0 ? Math.max(1, Math.floor(endsAtMs - performance.now())) : 0);
}
