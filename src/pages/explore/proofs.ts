/** Checks proofs in this page. Only headers signed by authorities are trusted, never a claim of the node. */
import { checkProof, type ProofQuestion, type ProvedState } from "../../../client/src/proof/check.js";
import { readProofJson } from "../../../client/src/proof/json.js";
import { type ProofNetwork, readProofNetwork } from "../../../client/src/proof/network.js";
import type { SignedHeader } from "../../../client/src/proof/proof-error.js";
import { readHeader } from "../../../client/src/proof/headers.js";
import type { HeadAnswer } from "./answers.js";
import { type ExploredNode, withQuery } from "./node.js";

/** Proved state and its signer. */
export interface Verified {
  readonly state: ProvedState;
  /** Signer of the header: 0x and 64 lowercase hex digits; undefined for block 0. */
  readonly signer: string | undefined;
  readonly genesisHash: string;
}

/** Checks proofs for one network. */
export interface Proofs {
  /** Hash of the genesis that the reader trusts; the node's own until the reader names one. */
  trusted: string | undefined;
  /** Requests a proof and checks it. Rejects with ProofError or NodeError. */
  verify(question: ProofQuestion): Promise<Verified>;
}

/** Maximum age in seconds of an authority's statement about the latest block. They sign one every 30 s. */
const maxAgeS = 120;

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
    async verify(question) {
      const network = await networkOf(this.trusted);
      const { storageAddress, fields, withDocument, withMetadata, withCommitments, nullifiers } = question;
      const text = await askText(
        withQuery("state/proof", {
          storageAddress,
          fields,
          withDocument: withDocument === true ? "true" : undefined,
          withMetadata: withMetadata === true ? "true" : undefined,
          withCommitments: withCommitments === true ? "true" : undefined,
          nullifiers,
        }),
      );
      const state = checkProof(question, readProofJson(text), { network, nowMs: Date.now(), maxAgeS, seen });
      const { signed } = state.block;
      seen = signed ?? seen;
      return { state, signer: signed && readHeader(signed.header).proposer, genesisHash: network.genesisHash };
    },
  };
}
