/** What is known of a network while its state is read: its genesis, and the newest block that was proved. */
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { type FailureReason, GatehouseError } from "../gatehouse-error.js";
import { checkProof, type ProofQuestion, type ProvedState } from "./check.js";
import { needOneChain } from "./moment.js";
import { type ProofNetwork, readProofNetwork } from "./network.js";
import { ProofError, type SignedHeader } from "./proof-error.js";
import type { AskNode, HashPair, ProofSource } from "./source.js";

/** What a reader believes, and how far. */
export interface VerifyOptions {
  /** Hash of the genesis: 0x and 64 hex digits. Its text is asked for, once, and must have this hash. */
  readonly genesisHash?: string | undefined;
  /** The text of the genesis, letter by letter; nobody is asked for it then. */
  readonly genesis?: string | undefined;
  /**
   * How long ago an authority must have said at least that a block is the newest; 120 seconds when left out. Authorities
   * say so every 30 seconds.
   */
  readonly maxAgeS?: number | undefined;
  /** The newest block that was proved before, by a program that keeps it. */
  readonly seen?: SignedHeader | undefined;
  /** Is told of each block that is newer than all before, for a program that keeps it. */
  readonly onSeen?: ((header: SignedHeader) => void) | undefined;
  /** Poseidon with circomlib's parameters over BN254, for paths in the commitment tree; without it they are not proved. */
  readonly hashPair?: HashPair | undefined;
}

/** One for each network; of any number of nodes. */
export interface ProofSession {
  /** Reads by what a node answers. What one node has shown holds for the others: none may answer as of an older block. */
  sourceOf(ask: AskNode): ProofSource;
  /** The newest block that was proved. */
  readonly seen: SignedHeader | undefined;
  /** What is pinned: 0x and 64 lower-case hex digits. */
  readonly genesisHash: string;
}

const usualMaxAgeS = 120;

/**
 * Begins one.
 *
 * @throws TypeError where nothing is pinned, or what is no hash.
 */
export function createProofSession(options: VerifyOptions): ProofSession {
  const { maxAgeS = usualMaxAgeS, hashPair, onSeen } = options;
  const given = options.genesisHash?.toLowerCase();
  let network = options.genesis === undefined ? undefined : readProofNetwork(options.genesis, given);
  const genesisHash = network?.genesisHash ?? given ?? "";
  if (!hex32.test(genesisHash)) {
    throw new TypeError("To verify, give genesisHash, 0x and 64 hex digits, or the text of the genesis.");
  }
  let { seen } = options;

  async function needNetwork(ask: AskNode): Promise<ProofNetwork> {
    network ??= readProofNetwork((await ask(InfoService.method.getGenesis, {})).genesis, genesisHash);
    return network;
  }

  function remember(header: SignedHeader | undefined): void {
    if (header !== undefined && (seen === undefined || header.number > seen.number)) {
      seen = header;
      onSeen?.(header);
    }
  }

  async function prove(ask: AskNode, question: ProofQuestion): Promise<ProvedState> {
    const trusted = await needNetwork(ask);
    // Of two answers that were under way at once, the older one may come last.
    const seenBefore = seen;
    const answer = await askForProof(ask, question);
    const state = checkProof(question, answer, { network: trusted, nowMs: Date.now(), maxAgeS, seen: seenBefore });
    // With what came meanwhile it must be one chain, too.
    needOneChain(state.block.signed, seen);
    remember(state.block.signed);
    return state;
  }

  return {
    genesisHash,
    sourceOf: (ask) => ({
      ask,
      hashPair,
      network: () => needNetwork(ask),
      prove: (question) => prove(ask, question),
    }),
    get seen() {
      return seen;
    },
  };
}

/** What of reads is proved, and must not be taken from a node that only says so. */
export const provedReasons: ReadonlySet<FailureReason> = new Set<FailureReason>([
  "NOT_FOUND",
  "FIELD_NOT_FOUND",
  "INVALID_FIELD_TYPE",
  "INDEX_OUT_OF_BOUNDS",
]);

async function askForProof(ask: AskNode, question: ProofQuestion) {
  try {
    return await ask(StateService.method.getProof, question);
  } catch (error) {
    if (error instanceof GatehouseError && provedReasons.has(error.reason)) {
      throw new ProofError("missing", `The node gives no proof: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
