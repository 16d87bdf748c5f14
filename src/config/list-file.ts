/** Reader of files with a JSON array, such as the peers file. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { InputError } from "../base/errors/start-error.js";

/**
 * Reads a file that holds a JSON array.
 *
 * @param name Name of the file in error messages, such as "peers file".
 * @param format Format of the array, as the end of the message "… must hold a JSON array of".
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readListFile<T>(path: string, name: string, item: z.ZodType<T>, format: string): Promise<T[]> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    throw new InputError(
      `The ${name} ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  const parsed = z.array(item).safeParse(json);
  if (!parsed.success) {
    const entry = parsed.error.issues[0]?.path.join(".") ?? "";
    const hint = entry === "" ? "" : `; check entry ${entry}`;
    throw new InputError(`The ${name} ${path} must hold a JSON array of ${format}${hint}.`);
  }
  return parsed.data;
}
