/** Network that the reader trusts. */
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { parseJsonText, toPlainJson } from "../../../src/base/text/parse-json.js";
import { utf8ToBytes } from "../bytes.js";
import { hashOf } from "./hashing.js";
import { ProofError } from "./proof-error.js";

/** Content of a genesis that verification needs. */
export interface ProofNetwork {
  /** Hash as 0x and 64 lower-case hex digits. */
  readonly genesisHash: string;
  /** Text of the genesis, as in block 0. */
  readonly genesis: string;
  /** Public keys that may produce blocks: 0x and 64 lower-case hex digits each. */
  readonly authorities: ReadonlySet<string>;
  /** Time of block 0 in milliseconds since the epoch. */
  readonly timestampMs: bigint;
}

/**
 * Parses a genesis.
 *
 * @param genesis its text, byte for byte.
 * @param pinned required hash, if the text comes from an untrusted source.
 * @throws ProofError network, malformed
 */
export function readProofNetwork(genesis: string, pinned?: string): ProofNetwork {
  const genesisHash = hashOf(utf8ToBytes(genesis));
  if (pinned !== undefined && pinned !== genesisHash) {
    throw new ProofError("network", `The genesis is that of the network ${genesisHash}, not of ${pinned}.`);
  }
  const { authorities = [], timestamp = 0 } = parse(genesis);
  if (!isKeyList(authorities) || !Number.isSafeInteger(timestamp)) {
    throw new ProofError("malformed", "The genesis has no list of authorities.");
  }
  return { genesisHash, genesis, authorities: new Set(authorities), timestampMs: BigInt(timestamp as number) };
}

function parse(genesis: string): { readonly authorities?: unknown; readonly timestamp?: unknown } {
  try {
    return Object(toPlainJson(parseJsonText(genesis))) as object;
  } catch (cause) {
    throw new ProofError("malformed", "The genesis is not JSON.", { cause });
  }
}

function isKeyList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((key) => typeof key === "string" && hex32.test(key));
}
