/** What a backup says of itself: the file that is written last, without which there is no backup. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { hex32 } from "../../base/crypto/hash.js";
import { StartError } from "../../base/errors/start-error.js";

/** What files of a backup are called. */
export const backupNames = {
  manifest: "backup.json",
  key: "identity.key",
  genesis: "genesis.json",
  peers: "peers.json",
  writers: "writers.json",
  database: "gatehouse.sqlite",
} as const;

/** Grows when an older version could not restore what a newer one saves. */
export const formatVersion = 1;

const manifest = z.object({
  format: z.literal("gatehouse backup"),
  formatVersion: z.number().int(),
  /** The version that made it. */
  gatehouse: z.string(),
  madeMs: z.number().int(),
  /** Public key of the node whose database it is; null while it was nobody's. */
  node: z.string().regex(hex32).nullable(),
  /** Public key of the key in it; null without one. */
  key: z.string().regex(hex32).nullable(),
  /** Hash of the genesis. */
  network: z.string().regex(hex32),
  head: z.object({ number: z.number().int(), hash: z.string().regex(hex32) }),
  engine: z.enum(["sqlite", "postgresql"]),
  /** Name of the configuration file; null without one. */
  config: z.string().nullable(),
  files: z.array(
    z.object({
      name: z.string().regex(/^[^/\\]+$/),
      sizeBytes: z.number().int(),
      /** SHA-256. */
      sha256: z.string().regex(hex32),
    }),
  ),
});

export type BackupManifest = z.infer<typeof manifest>;
export type BackupFile = BackupManifest["files"][number];

/**
 * Reads what a backup says of itself.
 *
 * @throws StartError where there is no backup, or one that this version cannot restore.
 */
export async function readManifest(folder: string): Promise<BackupManifest> {
  const path = join(folder, backupNames.manifest);
  const text = await readFile(path, "utf8").catch(() => {
    throw new StartError(
      `There is no backup at ${folder}: ${backupNames.manifest} is not there, which is written when a backup is whole.`,
    );
  });
  let read: z.ZodSafeParseResult<BackupManifest>;
  try {
    read = manifest.safeParse(JSON.parse(text));
  } catch {
    throw new StartError(`The file ${path} is damaged: it is not JSON. Take another backup.`);
  }
  if (!read.success) {
    const place = read.error.issues[0]?.path.join(".") ?? "";
    throw new StartError(`The file ${path} is damaged${place === "" ? "" : ` at ${place}`}. Take another backup.`);
  }
  if (read.data.formatVersion > formatVersion) {
    throw new StartError(
      `The backup was made by Gatehouse ${read.data.gatehouse}, in a format that this version does not know; restore it with that one.`,
    );
  }
  return read.data;
}

/** Size and hash of a file. */
export async function describeFile(folder: string, name: string): Promise<BackupFile> {
  const path = join(folder, name);
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(path)) {
    hash.update(bytes as Buffer);
  }
  return { name, sizeBytes: (await stat(path)).size, sha256: `0x${hash.digest("hex")}` };
}
