/** Callers that sign requests by the specification, with node:crypto only. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import type { TestKey } from "../chain/keys.js";

/** Identity headers, with `network` in the form for one network. */
export interface IdentityHeaders extends Record<string, string> {
  identity: string;
  timestamp: string;
  signature: string;
}

/** A caller with a key. */
export interface TestCaller {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Headers that prove the identity. */
  headers(options?: {
    readonly identity?: string;
    readonly timestamp?: string | number;
    /** Hash of a genesis; by default the form without a network. */
    readonly network?: string | undefined;
  }): IdentityHeaders;
  /** The headers of existing clients: the key signs its own digits, without a time. */
  timelessHeaders(): { readonly identity: string; readonly signature: string };
}

/** Creates a caller with a new key. */
export function createCaller(): TestCaller {
  const { publicKey: key, privateKey } = generateKeyPairSync("ed25519");
  return callerOf({
    publicKey: `0x${key.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`,
    sign: (bytes) => sign(null, bytes, privateKey),
  });
}

/** Creates the caller with this key. */
export function callerOf({ publicKey, sign }: Pick<TestKey, "publicKey" | "sign">): TestCaller {
  return {
    publicKey,
    headers({ identity = `ed25519:${publicKey}`, timestamp = Date.now(), network } = {}) {
      const prefix = network === undefined ? "" : `gatehouse-identity:${network}:`;
      const digest = createHash("sha256").update(`${prefix}${identity}:${timestamp}`).digest("hex");
      const signature = `0x${sign(Buffer.from(digest)).toString("hex")}`;
      return { identity, timestamp: String(timestamp), signature, ...(network !== undefined && { network }) };
    },
    timelessHeaders: () => ({
      identity: `ed25519:${publicKey}`,
      signature: `0x${sign(Buffer.from(publicKey)).toString("hex")}`,
    }),
  };
}
