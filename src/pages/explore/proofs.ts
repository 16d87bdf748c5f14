/** Checks proofs in this page. Only headers signed by authorities are trusted, never a claim of the node. */
import { checkProof, type ProofQuestion, type ProvedState } from "../../../client/src/proof/check.js";
import { readProofJson } from "../../../client/src/proof/json.js";
import { type ProofNetwork, readProofNetwork } from "../../../client/src/proof/network.js";
import type { SignedHeader } from "../../../client/src/proof/proof-error.js";
import type { GetProofResponse } from "../../../gen/gatehouse/state/v1/state_pb.js";
import type { HeadAnswer } from "./answers.js";
import { type ExploredNode, withQuery } from "./node.js";

/** Proved state. */
export interface Verified {
  readonly state: ProvedState;
}

/** Record of a check, filled as far as the check came. */
export interface Trace {
  question: ProofQuestion;
  network?: ProofNetwork;
  response?: GetProofResponse;
  state?: ProvedState;
}

/** Checks proofs for one network. */
export interface Proofs {
  /** Hash of the genesis that the reader trusts; the node's own until the reader names one. */
  trusted: string | undefined;
  /** Returns the trusted network. Rejects with ProofError or NodeError. */
  network(): Promise<ProofNetwork>;
  /** Requests a proof and checks it. Rejects with ProofError or NodeError. */
  verify(question: ProofQuestion, trace?: Trace): Promise<Verified>;
}

/** Maximum age in seconds of an authority's statement about the latest block. They sign one every 30 s. */
export const maxAgeS = 120;

/** Creates the checks for the node that served the page. */
export function createProofs({ ask, askText }: Pick<ExploredNode, "ask" | "askText">): Proofs {
  let known: ProofNetwork | undefined;
  let seen: SignedHeader | undefined;

  async function networkOf(pinned: string | undefined): Promise<ProofNetwork> {
    const wanted = pinned ?? (await ask<HeadAnswer>("chain/head")).genesisHash;
    if (known?.genesisHash !== wanted) {
      known = readProofNetwork(await askText("genesis"), wanted);
      seen = undefined;
    }
    return known;
  }

  return {
    trusted: undefined,
    network() {
      return networkOf(this.trusted);
    },
    async verify(question, trace = { question }) {
      const network = (trace.network = await this.network());
      const { storageAddress, fields, withDocument, withMetadata, withCommitments, nullifiers, senders } = question;
      const text = await askText(
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
      return { state };
    },
  };
}
