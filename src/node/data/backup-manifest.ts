/** Manifest of a backup. The manifest is the file that is written last; without it there is no backup. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { hex32 } from "../../base/crypto/hash.js";
import { StartError } from "../../base/errors/start-error.js";

/** Names of the files of a backup. */
export const backupNames = {
  manifest: "backup.json",
  key: "identity.key",
  genesis: "genesis.json",
  peers: "peers.json",
  writers: "writers.json",
  database: "gatehouse.sqlite",
} as const;

/** Version of the backup format. It increases when an older Gatehouse could not restore a newer backup. */
export const formatVersion = 1;

const manifest = z.object({
  format: z.literal("gatehouse backup"),
  formatVersion: z.number().int(),
  /** Version of Gatehouse that created the backup. */
  gatehouse: z.string(),
  madeMs: z.number().int(),
  /** Public key of the node that owns the database; null if the database had no owner. */
  node: z.string().regex(hex32).nullable(),
  /** Public key of the node key in the backup; null for a backup without a key. */
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
      /** SHA-256 of the content, 0x and 64 hex digits. */
      sha256: z.string().regex(hex32),
    }),
  ),
});

export type BackupManifest = z.infer<typeof manifest>;
export type BackupFile = BackupManifest["files"][number];

/**
 * Reads the manifest of a backup.
 *
 * @throws StartError if there is no backup, if the manifest is corrupt, or if this version cannot restore the backup.
 */
export async function readManifest(folder: string): Promise<BackupManifest> {
  const path = join(folder, backupNames.manifest);
  const text = await readFile(path, "utf8").catch(() => {
    throw new StartError(
      `There is no complete backup at ${folder}: ${backupNames.manifest} is missing, which is written last.`,
    );
  });
  let parsed: z.ZodSafeParseResult<BackupManifest>;
  try {
    parsed = manifest.safeParse(JSON.parse(text));
  } catch {
    throw new StartError(`The file ${path} is corrupt: it is not JSON. Use another backup.`);
  }
  if (!parsed.success) {
    const member = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new StartError(`The file ${path} is corrupt${member === "" ? "" : ` at ${member}`}. Use another backup.`);
  }
  if (parsed.data.formatVersion > formatVersion) {
    throw new StartError(
      `The backup was created by Gatehouse ${parsed.data.gatehouse}, in a format that this version does not support; restore it with that version.`,
    );
  }
  return parsed.data;
}

/** Returns the size and the hash of a file. */
export async function describeFile(folder: string, name: string): Promise<BackupFile> {
  const path = join(folder, name);
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(path)) {
    hash.update(bytes as Buffer);
  }
  return { name, sizeBytes: (await stat(path)).size, sha256: `0x${hash.digest("hex")}` };
}
