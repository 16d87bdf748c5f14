/** Check for `--verify`, separate from the proof code, which is loaded only if needed. */
import { ExitError, exitCodes } from "../usage/errors.js";
import type { VerifyFlags } from "../usage/flags.js";

/**
 * Returns true if the read must be proved.
 *
 * @throws ExitError with code 2 for a flag that requires `--verify`.
 */
export function isVerifying<F extends VerifyFlags>(flags: F): flags is F & { readonly verify: string } {
  const { verify, save, maxAge } = flags;
  if (verify === undefined && (save !== undefined || maxAge !== undefined)) {
    const name = save === undefined ? "--max-age" : "--save";
    throw new ExitError(`${name} requires --verify with the hash of the network's genesis.`, exitCodes.usage);
  }
  return verify !== undefined;
}
