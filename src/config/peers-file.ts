/** Reader of the --peers file. */
import { isStrongKey } from "../base/crypto/key-validation.js";
import { hex32 } from "../base/crypto/hash.js";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { InputError } from "../base/errors/start-error.js";

/** Configured peer. */
export interface PeerFileEntry {
  /** https://host:port of the peer's internal port; http if the network does not use TLS. */
  readonly url: string;
  /** Public key that the peer must prove: 0x and 64 lowercase hex digits. */
  readonly identity?: string | undefined;
}

const peerFile = z.array(
  z.strictObject({
    url: z.string().regex(/^https?:\/\/(\[[0-9a-fA-F:.]+\]|[^/:?#@\s]+):\d{1,5}$/),
    identity: z.string().regex(hex32).refine(isStrongKey).optional(),
  }),
);

/**
 * Reads a peers file: a JSON array of `{"url": "https://host:port", "identity": "0x…"}`, identity optional.
 *
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readPeersFile(path: string): Promise<PeerFileEntry[]> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new InputError(
      `The peers file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  const parsed = peerFile.safeParse(json);
  if (!parsed.success) {
    const entry = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new InputError(
      `The peers file ${path} must hold a JSON array of {"url": "https://host:port", "identity": "0x<64 hex digits>"}, ` +
        `identity optional${entry === "" ? "" : `; check entry ${entry}`}.`,
    );
  }
  return [...new Map(parsed.data.map((entry) => [entry.url, entry])).values()];
}
