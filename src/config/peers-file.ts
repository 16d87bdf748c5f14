/** Reader of the --peers file. */
import { z } from "zod";
import { isStrongKey } from "../base/crypto/key-validation.js";
import { hex32 } from "../base/crypto/hash.js";
import { readListFile } from "./list-file.js";

/** Configured peer. */
export interface PeerFileEntry {
  /** https://host:port of the peer's internal port; http if the network does not use TLS. */
  readonly url: string;
  /** Public key that the peer must prove: 0x and 64 lowercase hex digits. */
  readonly identity?: string | undefined;
}

const peer = z.strictObject({
  url: z.string().regex(/^https?:\/\/(\[[0-9a-fA-F:.]+\]|[^/:?#@\s]+):\d{1,5}$/),
  identity: z.string().regex(hex32).refine(isStrongKey).optional(),
});
const format = '{"url": "https://host:port", "identity": "0x<64 hex digits>"}, identity optional';

/**
 * Reads a peers file: a JSON array of `{"url": "https://host:port", "identity": "0x…"}`, identity optional. The last of
 * several entries with one URL counts.
 *
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readPeersFile(path: string): Promise<PeerFileEntry[]> {
  const entries = await readListFile(path, "peers file", peer, format);
  return [...new Map(entries.map((entry) => [entry.url, entry])).values()];
}
