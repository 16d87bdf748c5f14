/** Checks of values that several commands accept. */
import { hex32 } from "../../base/crypto/hash.js";
import { ExitError, exitCodes } from "./errors.js";
import { defaultNode } from "./flags.js";

/** Returns the hash of a genesis in lowercase. Throws ExitError with code 2 if it is malformed. */
export function parseGenesisHash(flag: string, value: string): string {
  const hash = value.toLowerCase();
  if (!hex32.test(hash)) {
    throw new ExitError(
      `${flag} must be the hash of a genesis, 0x and 64 hex digits, not "${value.slice(0, 80)}".`,
      exitCodes.usage,
    );
  }
  return hash;
}

/** Returns the URL of a node unchanged. Throws ExitError with code 2 if it is malformed. */
export function checkUrl(name: string, url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new ExitError(`${name} must be a URL such as ${defaultNode}, not "${url}".`, exitCodes.usage);
  }
  return url;
}
