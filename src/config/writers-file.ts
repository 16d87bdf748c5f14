/** Reader of the --writers-file file. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { hex32 } from "../base/crypto/hash.js";
import { InputError } from "../base/errors/start-error.js";

const writersFile = z.array(z.string().regex(hex32));

/**
 * Reads a writers file: a JSON array of public keys.
 *
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readWritersFile(path: string): Promise<readonly string[]> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new InputError(
      `The writers file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  const parsed = writersFile.safeParse(json);
  if (!parsed.success) {
    const entry = parsed.error.issues[0]?.path.join(".") ?? "";
    throw new InputError(
      `The writers file ${path} must hold a JSON array of keys, 0x and 64 lower-case hex digits each` +
        `${entry === "" ? "" : `; check entry ${entry}`}.`,
    );
  }
  return parsed.data;
}
