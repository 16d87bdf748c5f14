/** Checks proofs in this page. Only headers signed by authorities are trusted, never a claim of the node. */
import { checkProof, type ProofQuestion, type ProvedState } from "../../../../client/src/proof/check.js";
import { readProofJson } from "../../../../client/src/proof/json.js";
import { type ProofNetwork, readProofNetwork } from "../../../../client/src/proof/network.js";
import type { SignedHeader } from "../../../../client/src/proof/proof-error.js";
import type { GetProofResponse } from "../../../../gen/gatehouse/state/v1/state_pb.js";
import type { HeadResponse } from "../responses.js";
import { type ExploredNode, withQuery } from "../node.js";

/** Record of the inputs and the result of a check. After a failed check, the later members are missing. */
export interface Trace {
  question: ProofQuestion;
  network?: ProofNetwork;
  response?: GetProofResponse;
  state?: ProvedState;
}

/** Checks proofs for one network. */
export interface Proofs {
  /** Hash of the genesis that the reader entered; undefined to trust the node's own genesis. */
  trusted: string | undefined;
  /** Returns the trusted network. Rejects with ProofError or NodeError. */
  network(): Promise<ProofNetwork>;
  /**
   * Requests and checks the proof that the trace describes, and fills the trace. Rejects with ProofError or NodeError.
   */
  verify(trace: Trace): Promise<ProvedState>;
}

/**
 * Maximum age in seconds of an authority's statement about the latest block. Authorities sign a statement every 30 s.
 */
export const maxAgeS = 120;

/** Creates the proof checks for the node that served the page. */
export function createProofs({ fetchJson, fetchText }: Pick<ExploredNode, "fetchJson" | "fetchText">): Proofs {
  let known: ProofNetwork | undefined;
  let seen: SignedHeader | undefined;

  async function loadNetwork(pinned: string | undefined): Promise<ProofNetwork> {
    const genesisHash = pinned ?? (await fetchJson<HeadResponse>("chain/head")).genesisHash;
    if (known?.genesisHash !== genesisHash) {
      known = readProofNetwork(await fetchText("genesis"), genesisHash);
      seen = undefined;
    }
    return known;
  }

  return {
    trusted: undefined,
    network() {
      return loadNetwork(this.trusted);
    },
    async verify(trace) {
      const { question } = trace;
      const network = (trace.network = await this.network());
      const { storageAddress, fields, withDocument, withMetadata, withCommitments, nullifiers, senders } = question;
      const text = await fetchText(
        withQuery("state/proof", {
          storageAddress,
          fields,
          withDocument: withDocument === true ? "true" : undefined,
          withMetadata: withMetadata === true ? "true" : undefined,
          withCommitments: withCommitments === true ? "true" : undefined,
          nullifiers,
          senders,
        }),
      );
      trace.response = readProofJson(text);
      const state = checkProof(question, trace.response, { network, nowMs: Date.now(), maxAgeS, seen });
      trace.state = state;
      seen = state.block.signed ?? seen;
      return state;
    },
  };
}
