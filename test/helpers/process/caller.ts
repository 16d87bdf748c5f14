/** Callers that sign requests by the specification, with node:crypto only. */
import { createHash } from "node:crypto";
import { newKey, type TestKey } from "../chain/keys.js";

/** Identity headers, with `network` in the form for one network. */
export interface IdentityHeaders extends Record<string, string> {
  identity: string;
  timestamp: string;
  signature: string;
}

/** A caller with a key. */
export type TestCaller = ReturnType<typeof callerOf>;

/** Creates a caller with a new key. */
export function createCaller(): TestCaller {
  return callerOf(newKey());
}

/** Creates the caller with this key. */
export function callerOf({ publicKey, sign }: Pick<TestKey, "publicKey" | "sign">) {
  return {
    publicKey,
    /** Headers that prove the identity, for the network with this hash of its genesis, or in the form for any. */
    headers({
      identity = `ed25519:${publicKey}`,
      timestamp = Date.now(),
      network,
    }: {
      readonly identity?: string;
      readonly timestamp?: string | number;
      readonly network?: string | undefined;
    } = {}): IdentityHeaders {
      const prefix = network === undefined ? "" : `gatehouse-identity:${network}:`;
      const digest = createHash("sha256").update(`${prefix}${identity}:${timestamp}`).digest("hex");
      const signature = `0x${sign(Buffer.from(digest)).toString("hex")}`;
      return { identity, timestamp: String(timestamp), signature, ...(network !== undefined && { network }) };
    },
    /** The headers of existing clients: the key signs its own digits, without a time. */
    timelessHeaders: () => ({
      identity: `ed25519:${publicKey}`,
      signature: `0x${sign(Buffer.from(publicKey)).toString("hex")}`,
    }),
  };
}
