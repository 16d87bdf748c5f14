/** Writer for files that commands save. */
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createPrivateDirectory, privateFileMode } from "../../base/files/private-files.js";
import { ExitError, exitCodes } from "./errors.js";

/**
 * Writes a file and replaces an existing one. Creates the directory if it does not exist.
 *
 * @throws ExitError with code 2 if the file cannot be written.
 */
export async function writeOutput(path: string, text: string): Promise<void> {
  try {
    await createPrivateDirectory(dirname(path));
    await writeFile(path, text, { mode: privateFileMode });
  } catch (error) {
    throw new ExitError(`${path} cannot be written: ${(error as Error).message}.`, exitCodes.usage);
  }
}
