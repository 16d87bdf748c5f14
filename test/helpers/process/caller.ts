/** Callers with keys, who sign as the specification says; made of node:crypto alone. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import type { TestKey } from "../chain/keys.js";

/** The headers; `network` stands beside them where the form names one. */
export interface IdentityHeaders extends Record<string, string> {
  identity: string;
  timestamp: string;
  signature: string;
}

/** Somebody with a key. */
export interface TestCaller {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Headers that prove the identity. */
  headers(options?: {
    readonly identity?: string;
    readonly timestamp?: string | number;
    /** Hash of a genesis; the form without a network when left out. */
    readonly network?: string | undefined;
  }): IdentityHeaders;
  /** What existing clients send with each call: the key signs its own digits, and no time. */
  timelessHeaders(): { readonly identity: string; readonly signature: string };
}

/** A caller with a new key. */
export function createCaller(): TestCaller {
  const { publicKey: key, privateKey } = generateKeyPairSync("ed25519");
  return callerOf({
    publicKey: `0x${key.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`,
    sign: (bytes) => sign(null, bytes, privateKey),
  });
}

/** Who holds this key. */
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
