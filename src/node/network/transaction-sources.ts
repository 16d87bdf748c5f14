/** Sources of transactions, as the mempool distinguishes them. */
import { isIP } from "node:net";
import type { TransactionSource } from "../../chain/mempool/mempool-admission.js";
import type { Config } from "../../config/config.js";
import { addressPrefixOf } from "../../base/ip-address.js";
import { createAddressSet } from "../../edge/client-address.js";

/** Returns the source of transactions from an address. The mempool applies quotas and rates to each source. */
export type SourceOf = (address: string) => TransactionSource;

/**
 * Creates the function. Addresses that are exempt from the request rate limit are exempt here too, and so are clients
 * without an IP address.
 */
export function createSourceOf({ rateLimitExempt }: Pick<Config, "rateLimitExempt">): SourceOf {
  const isExempt = createAddressSet(rateLimitExempt);
  return (address) => ({ address: addressPrefixOf(address), isExempt: isIP(address) === 0 || isExempt(address) });
}
