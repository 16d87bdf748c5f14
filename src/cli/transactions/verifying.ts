/** Whether a read is to be proved, which is known before anything is loaded for it. */
import { ExitError, exitCodes } from "../usage/errors.js";
import type { VerifyFlags } from "../usage/flags.js";

/**
 * Whether it is.
 *
 * @throws ExitError with code 2 for what makes sense with a proof alone.
 */
export function isVerifying<F extends VerifyFlags>(flags: F): flags is F & { readonly verify: string } {
  const { verify, save, maxAge } = flags;
  if (verify === undefined && (save !== undefined || maxAge !== undefined)) {
    const name = save === undefined ? "--max-age" : "--save";
    throw new ExitError(`${name} needs --verify with the hash of the network's genesis.`, exitCodes.usage);
  }
  return verify !== undefined;
}
