/** Loads packages that are installed on request only, since many applications do not need them. */
import { StartError } from "../errors/start-error.js";

/** Returns the message about missing packages, without a final period. `purpose` starts the sentence: "PostgreSQL". */
export function missingPackage(purpose: string, names: string): string {
  return `${purpose} needs a package that is not installed; run: npm install ${names}`;
}

/**
 * Loads packages, whose names are separated by spaces.
 *
 * @param load Imports by a literal name, which the bundler recognizes.
 * @throws StartError if one is not installed.
 */
export async function loadOptional<Loaded>(
  purpose: string,
  names: string,
  load: () => Loaded | Promise<Loaded>,
): Promise<Loaded> {
  try {
    return await load();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND"
      ? new StartError(missingPackage(purpose, names), { cause: error })
      : error;
  }
}
