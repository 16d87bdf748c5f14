/** The chain service. */
import type { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { Failure } from "../errors.js";
import type { Implementation } from "../rpc/service.js";
import type { ChainStore } from "./store.js";

/** Builds the chain service. */
export function createChainService(store: Pick<ChainStore, "head">): Implementation<typeof ChainService> {
  return {
    async getHead() {
      const head = await store.head();
      if (head === undefined) {
        throw new Failure("STATE_NOT_READY", "The node has no genesis block yet; start it with --genesis FILE.");
      }
      return head;
    },
  };
}
