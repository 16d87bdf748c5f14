/** Reader of the --writers-file file. */
import { z } from "zod";
import { hex32 } from "../base/crypto/hash.js";
import { readListFile } from "./list-file.js";

/**
 * Reads a writers file: a JSON array of public keys.
 *
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readWritersFile(path: string): Promise<readonly string[]> {
  const format = "keys, 0x and 64 lower-case hex digits each";
  return await readListFile(path, "writers file", z.string().regex(hex32), format);
}
