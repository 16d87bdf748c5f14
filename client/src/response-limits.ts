/** Limits on a response: what no node exceeds, so that one that sends without end holds nobody. */
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";

const mebibyte = 1024 * 1024;

/** The limit on all responses but one: nodes give up to 4 MiB, and what stands around a block. */
export const maxResponseBytes = 5 * mebibyte;

/** The limit on a genesis: a file of up to 16 MiB. */
export const maxGenesisBytes = 17 * mebibyte;

const genesisPath = `/${InfoService.typeName}/${InfoService.method.getGenesis.name}`;

/**
 * Returns the limit on a unary response, in bytes.
 *
 * @param url ends with the service and method, as those of Connect do.
 */
export function maxBytesFrom(url: string): number {
  return url.endsWith(genesisPath) ? maxGenesisBytes : maxResponseBytes;
}

/**
 * Starts a time limit that several calls share.
 *
 * @param timeoutMs in milliseconds; 0 for no limit.
 * @returns a function that gives the time that is left for the next call, at least 1 ms; 0 for no limit.
 */
export function startTimeout(timeoutMs: number): () => number {
  const endsAtMs = performance.now() + timeoutMs;
  return () => (timeoutMs > 0 ? Math.max(1, Math.floor(endsAtMs - performance.now())) : 0);
}
