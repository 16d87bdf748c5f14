/** Verified knowledge of a network while its state is read: its genesis, and the latest proven block. */
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { type GetProofRequest, StateService } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { GatehouseError } from "../gatehouse-error.js";
import { checkProof, type ProofQuestion, type ProvedState, toRequest } from "./check.js";
import type { VerifyEd25519 } from "./hashing.js";
import { requireOneChain } from "./moment.js";
import { type ProofNetwork, readProofNetwork } from "./network.js";
import { ProofError, type SignedHeader } from "./proof-error.js";
import { type AskNode, type HashPair, type ProofSource, absenceReasons } from "./source.js";

/** Trust settings of a verifying client. */
export interface VerifyOptions {
  /**
   * Hash of the genesis: 0x and 64 hex digits. The client requests the text from the node, once, and checks it against
   * the hash.
   */
  readonly genesisHash?: string | undefined;
  /** Text of the genesis, byte for byte; replaces the request to the node. */
  readonly genesis?: string | undefined;
  /**
   * Limit in seconds on the age of the latest statement by an authority that the block is the latest. Default: 120.
   * Authorities sign such a statement every 30 seconds.
   */
  readonly maxAgeS?: number | undefined;
  /** Latest block that was proven before, if the program stores it. */
  readonly seen?: SignedHeader | undefined;
  /** Called with each block that is later than all before, for a program that stores it. */
  readonly onSeen?: ((header: SignedHeader) => void) | undefined;
  /**
   * Poseidon with circomlib's parameters over BN254, for paths in the commitment tree. Without it, such paths are
   * unprovable.
   */
  readonly hashPair?: HashPair | undefined;
  /**
   * Faster verification of the signatures of senders, if the platform has one. By default each takes 1 to 2 ms, and a
   * block has up to 1,000 or more.
   */
  readonly verifyEd25519?: VerifyEd25519 | undefined;
}

/** Session for one network, with any number of nodes. */
export interface ProofSession {
  /**
   * Creates a source of verified reads from a node. All nodes share the latest block, so none may respond with an older
   * state.
   */
  sourceOf(ask: AskNode): ProofSource;
  /** Latest block that was proven. */
  readonly seen: SignedHeader | undefined;
  /** Pinned hash of the genesis: 0x and 64 lower-case hex digits. */
  readonly genesisHash: string;
}

const defaultMaxAgeS = 120;

/**
 * Creates a session.
 *
 * @throws TypeError if nothing is pinned, or the pinned hash is invalid.
 */
export function createProofSession(options: VerifyOptions): ProofSession {
  const { maxAgeS = defaultMaxAgeS, hashPair, onSeen, verifyEd25519 } = options;
  const pinned = options.genesisHash?.toLowerCase();
  let network = options.genesis === undefined ? undefined : readProofNetwork(options.genesis, pinned);
  const genesisHash = network?.genesisHash ?? pinned ?? "";
  if (!hex32.test(genesisHash)) {
    throw new TypeError("To verify, set genesisHash, 0x and 64 hex digits, or the text of the genesis.");
  }
  if (!(maxAgeS >= 0)) {
    throw new TypeError(`maxAgeS must be a number of seconds from 0, not ${maxAgeS}.`);
  }
  let { seen } = options;

  async function requireNetwork(ask: AskNode): Promise<ProofNetwork> {
    network ??= readProofNetwork((await ask(InfoService.method.getGenesis, {})).genesis, genesisHash);
    return network;
  }

  function recordSeen(header: SignedHeader | undefined): void {
    if (header !== undefined && (seen === undefined || header.number > seen.number)) {
      seen = header;
      onSeen?.(header);
    }
  }

  async function prove(ask: AskNode, question: ProofQuestion): Promise<ProvedState> {
    const trustedNetwork = await requireNetwork(ask);
    // Of two concurrent responses, the older one may arrive last, so compare with the state before the request.
    const seenBefore = seen;
    const request = toRequest(question);
    const response = await requestProof(ask, request);
    const state = checkProof(request, response, {
      network: trustedNetwork,
      nowMs: Date.now(),
      maxAgeS,
      seen: seenBefore,
    });
    // The block must also be on one chain with blocks that were proven meanwhile.
    requireOneChain(state.block.signed, seen);
    recordSeen(state.block.signed);
    return state;
  }

  return {
    genesisHash,
    sourceOf: (ask) => ({
      ask,
      hashPair,
      verifyEd25519,
      network: () => requireNetwork(ask),
      prove: (question) => prove(ask, question),
      get seen() {
        return seen;
      },
    }),
    get seen() {
      return seen;
    },
  };
}

async function requestProof(ask: AskNode, request: GetProofRequest) {
  try {
    return await ask(StateService.method.getProof, request);
  } catch (error) {
    // A node lacks the state after a block that is old, or does not exist yet. It has that after its latest block.
    const isAbsence = error instanceof GatehouseError && absenceReasons.has(error.reason);
    if (isAbsence && request.block === undefined) {
      throw new ProofError("missing", `The node returned no proof: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
