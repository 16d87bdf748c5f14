/** Writing what commands are told to save. */
import { writeFile } from "node:fs/promises";
import { privateFileMode } from "../../base/private-files.js";
import { ExitError, exitCodes } from "./errors.js";

/**
 * Writes a file, in place of one that is there.
 *
 * @throws ExitError with code 2 when it cannot be written.
 */
export async function writeOutput(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: privateFileMode }).catch((error: unknown) => {
    throw new ExitError(`${path} cannot be written: ${(error as Error).message}.`, exitCodes.usage);
  });
}
