/** Where transactions come from, as the mempool tells it apart. */
import { isIP } from "node:net";
import type { Origin } from "../../chain/mempool/mempool-admission.js";
import type { Config } from "../../config/config.js";
import { createAddressSet, addressPrefixOf } from "../../edge/cidr.js";

/** What an address is to the shares and rates of the mempool. */
export type OriginOf = (address: string) => Origin;

/** Builds it: whoever is exempt from the rate of requests is exempt from these too, and so is who has no address. */
export function createOriginOf({ rateLimitExempt }: Pick<Config, "rateLimitExempt">): OriginOf {
  const isExempt = createAddressSet(rateLimitExempt);
  return (address) => ({ address: addressPrefixOf(address), isExempt: isIP(address) === 0 || isExempt(address) });
}
