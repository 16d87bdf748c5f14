/** Writing what commands are told to save. */
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateDirectory, privateFileMode } from "../../base/files/private-files.js";
import { ExitError, exitCodes } from "./errors.js";

/**
 * Writes a file, in place of one that is there; its directory is made where there is none.
 *
 * @throws ExitError with code 2 when it cannot be written.
 */
export async function writeOutput(path: string, text: string): Promise<void> {
  try {
    await makePrivateDirectory(dirname(path));
    await writeFile(path, text, { mode: privateFileMode });
  } catch (error) {
    throw new ExitError(`${path} cannot be written: ${(error as Error).message}.`, exitCodes.usage);
  }
}
