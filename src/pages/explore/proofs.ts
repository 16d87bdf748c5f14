/** Proofs, checked in this page: headers that authorities signed are believed, and nothing that the node only says. */
import { checkProof, type ProofQuestion, type ProvedState } from "../../../client/src/proof/check.js";
import { readProofJson } from "../../../client/src/proof/json.js";
import { type ProofNetwork, readProofNetwork } from "../../../client/src/proof/network.js";
import type { SignedHeader } from "../../../client/src/proof/proof-error.js";
import { readHeader } from "../../../client/src/proof/headers.js";
import type { HeadAnswer } from "./answers.js";
import { type ExploredNode, withQuery } from "./node.js";

/** What is proved, and by whom. */
export interface Verified {
  readonly state: ProvedState;
  /** Who signed the header: 0x and 64 lower-case hex digits; undefined for block 0. */
  readonly signer: string | undefined;
  readonly genesisHash: string;
}

/** Checks proofs for one network. */
export interface Proofs {
  /** Hash of the genesis that the reader trusts; the node's own while he has named none. */
  trusted: string | undefined;
  /** Asks for a proof and checks it. Rejects with ProofError, or NodeError. */
  verify(question: ProofQuestion): Promise<Verified>;
}

/** An authority must have said so lately that a block is the newest; it does every 30 seconds. */
const maxAgeS = 120;

/** For the node that the page comes from. */
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
