/** The event service of a node: what it reads of the chain and of access rules, and what it is told of. */
import { fromBinary } from "@bufbuild/protobuf";
import { HeadStatementSchema, TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { targetAddress } from "../../base/program-address.js";
import type { Chain } from "../../chain/chain.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { checkRetained, createRetainedBlocks } from "../../chain/blocks/retained-blocks.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { createBlockLog } from "../../event/block-log.js";
import { createEvents, type Events } from "../../event/service.js";
import type { ReadablePrograms } from "../../storage/stores/readable-store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** What it is made of beside the core. */
export interface NodeEventsDeps {
  readonly store: Pick<ChainStore, "block" | "lowestBlock">;
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "newestStatement">;
  readonly readable: ReadablePrograms;
}

/** Builds it. */
export function createNodeEvents(
  { bus, memory }: Pick<NodeCore, "bus" | "memory">,
  { store, chain, heads, readable }: NodeEventsDeps,
): Pick<Events, "service" | "close"> {
  const head = () => chain.head();
  const log = createBlockLog({
    readBlock: createRetainedBlocks(store),
    reading: {
      decode: (body) => fromBinary(TransactionBodySchema, body, { readUnknownFields: false }),
      addressOf: (body) =>
        // What names no program is nobody's.
        body.operation.case === "storage" ? (targetAddress(body.operation.value, body) ?? "") : undefined,
    },
    readership: readable,
    head,
    maxBytes: memory.eventBytes,
  });
  const events = createEvents({ head, log, checkKept: checkRetained });
  bus.on("blockApplied", () => events.wake());
  bus.on("headFound", ({ isLeap }) => {
    if (isLeap) {
      log.forget();
    }
    events.wake();
  });
  bus.on("transactionRejected", (rejection) => events.rejected(rejection));
  bus.on("headStated", () => {
    const newest = chain.head();
    const signed = newest && heads.newestStatement(newest.hash);
    if (signed !== undefined) {
      events.headSigned(fromBinary(HeadStatementSchema, signed.statement), signed);
    }
  });
  return events;
}
