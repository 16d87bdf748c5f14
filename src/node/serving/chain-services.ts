/** Chain services for each kind of caller: the public, other nodes, and the operator. */
import { fromBinary } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { createBlockRedactor, revealAll, type ReadAccess } from "../../chain/blocks/block-redactor.js";
import { createChainService } from "../../chain/service.js";
import type { Call, Implementation } from "../../rpc/service.js";
import type { ReadablePrograms } from "../../storage/stores/program-list-store.js";
import { canRead, readAccessControl } from "../../storage/programs/access.js";
import { targetAddress } from "../../base/program-address.js";
import type { NodeNetwork } from "../network/network.js";

type Parameter<I extends number> = Parameters<typeof createChainService>[I];

/** @param deps.readershipBytes limit on cached block data that decides which callers may read a block. */
export function createChainServices(deps: {
  readonly chain: Parameter<0>;
  readonly heads: Parameter<1>;
  readonly store: Parameter<2>;
  readonly readable: ReadablePrograms;
  readonly readershipBytes: number;
}) {
  const { chain, heads, store, readable, readershipBytes } = deps;
  const redactor = createBlockRedactor(createReadership(readable), readershipBytes);
  /** Service for the public. A caller reads only those program transactions whose program the caller may read. */
  const anyCaller = createChainService(chain, heads, store, redactor);
  /** Service for the operator, which shows everything: the operator has the database anyway. */
  const operator = createChainService(chain, heads, store, revealAll);
  return { anyCaller, operator };
}

/** Creates the service for other nodes. Followers read everything; others read as the public, but not the stream of blocks. */
export function serveNodes(
  { anyCaller, operator }: ReturnType<typeof createChainServices>,
  { mayFollow, checkFollower }: Pick<NodeNetwork, "mayFollow" | "checkFollower">,
): Implementation<typeof ChainService> {
  return Object.fromEntries(
    ChainService.methods.map(({ localName }) => [
      localName,
      (request: never, call: Call) => {
        const { identity } = call.caller;
        if (localName === "listBlocks") {
          checkFollower(identity);
        }
        return (mayFollow(identity) ? operator : anyCaller)[localName as "getHead"](request, call);
      },
    ]),
  ) as Implementation<typeof ChainService>;
}

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
    permitsPending(bytes, identity) {
      const { sender, operation } = fromBinary(TransactionBodySchema, bytes, { readUnknownFields: false });
      const change = operation.case === "storage" ? operation.value.operation : undefined;
      return (
        sender === identity ||
        (change?.case === "createProgram" && canRead(readAccessControl(sender, change.value.access), identity))
      );
    },
  };
}
