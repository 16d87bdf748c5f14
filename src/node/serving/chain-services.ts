/** Chain services for each kind of caller: the public, other nodes, and the operator. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import {
  createBlockRedactor,
  revealAll,
  type BlockRedactor,
  type ReadAccess,
} from "../../chain/blocks/block-redactor.js";
import { createChainService } from "../../chain/service.js";
import { RpcError } from "../../rpc/errors.js";
import type { Implementation } from "../../rpc/service.js";
import type { ReadablePrograms } from "../../storage/stores/program-list-store.js";
import { targetAddress } from "../../base/program-address.js";
import type { MayFollow } from "../network/followers.js";

/** Implementation of the chain service for each kind of caller. */
export interface ChainServices {
  /** Service for the public. A caller reads only those program transactions whose program the caller may read. */
  readonly anyCaller: Implementation<typeof ChainService>;
  /**
   * Service for other nodes. Followers read everything; other nodes have the access of the public, without the stream
   * of blocks.
   */
  readonly nodes: Implementation<typeof ChainService>;
  /** Service for the operator, which shows everything: the operator has the database anyway. */
  readonly operator: Implementation<typeof ChainService>;
}

/** Dependencies of the chain services. */
export interface ChainServicesDeps {
  readonly chain: Parameters<typeof createChainService>[0];
  readonly heads: Parameters<typeof createChainService>[1];
  readonly store: Parameters<typeof createChainService>[2];
  readonly readable: ReadablePrograms;
  readonly mayFollow: MayFollow;
  /** Limit in bytes on cached block data that decides which callers may read a block. */
  readonly readershipBytes: number;
}

export function createChainServices({
  chain,
  heads,
  store,
  readable,
  mayFollow,
  readershipBytes,
}: ChainServicesDeps): ChainServices {
  const publicRedactor = createBlockRedactor(createReadership(readable), readershipBytes);
  const redactorFor = (identity: string | undefined): BlockRedactor =>
    mayFollow(identity) ? revealAll : publicRedactor;
  const nodeService = createChainService(chain, heads, store, {
    block: (stored, identity) => redactorFor(identity).block(stored, identity),
    body: (body, identity) => redactorFor(identity).body(body, identity),
    bodies: (bodies, identity) => redactorFor(identity).bodies(bodies, identity),
    areReadable: (subjects, identity) => redactorFor(identity).areReadable(subjects, identity),
  });
  return {
    anyCaller: createChainService(chain, heads, store, publicRedactor),
    nodes: {
      ...nodeService,
      async *listBlocks(request, call) {
        if (!mayFollow(call.caller.identity)) {
          throw new RpcError("PERMISSION_DENIED", notListed);
        }
        yield* nodeService.listBlocks(request, call);
      },
    },
    operator: createChainService(chain, heads, store, revealAll),
  };
}

const notListed =
  "This node sends blocks to listed followers only: ask its operator to add your node's key in --peers or with gatehouse " +
  "peers add --identity. Followers in the network's genesis are listed, too.";

/**
 * Creates the access rule for transactions: the access of a program also applies to transactions on it. All other
 * transactions are public.
 */
function createReadership(programs: ReadablePrograms): ReadAccess {
  return {
    subjectOf(bytes) {
      const body = fromBinary(TransactionBodySchema, bytes, { readUnknownFields: false });
      const { operation } = body;
      // The empty address is no program, so no caller may read the transaction.
      return operation.case === "zk"
        ? undefined
        : ((operation.case === "storage" ? targetAddress(operation.value, body) : undefined) ?? "");
    },
    readable: (addresses, identity) => programs.readableOf(addresses, identity),
  };
}
