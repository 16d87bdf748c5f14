/** Event service of a node: connects the service to the chain, to access rules and to the bus. */
import { fromBinary } from "@bufbuild/protobuf";
import { HeadStatementSchema, TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { targetAddress } from "../../base/program-address.js";
import type { Chain } from "../../chain/chain.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { checkRetained, readRetained } from "../../chain/blocks/retained-blocks.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { createBlockLog } from "../../event/block-log.js";
import { createEvents } from "../../event/service.js";
import type { ReadablePrograms } from "../../storage/stores/program-list-store.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Creates the event service, and subscribes it to the bus. */
export function createNodeEvents(
  { bus, memory }: Pick<NodeCore, "bus" | "memory">,
  deps: {
    readonly store: Pick<ChainStore, "block" | "lowestBlock">;
    readonly chain: Pick<Chain, "head">;
    readonly heads: Pick<HeadStatements, "latestSignedHead">;
    readonly readable: ReadablePrograms;
  },
) {
  const { store, chain, heads, readable } = deps;
  const head = () => chain.head();
  const log = createBlockLog({
    readBlock: (number) => readRetained(store, number),
    decoder: {
      decode: (body) => fromBinary(TransactionBodySchema, body, { readUnknownFields: false }),
      addressOf: (body) =>
        // The empty address is no program, so no client may read the operation.
        body.operation.case === "storage" ? (targetAddress(body.operation.value, body) ?? "") : undefined,
    },
    access: readable,
    head,
    maxBytes: memory.eventBytes,
  });
  const events = createEvents({ head, log, checkRetained });
  bus.on("blockApplied", () => events.notify());
  bus.on("headFound", ({ isReset }) => {
    if (isReset) {
      log.clear();
    }
    events.notify();
  });
  bus.on("transactionRejected", (rejection) => events.rejected(rejection));
  bus.on("headStated", () => {
    const latest = chain.head();
    const signed = latest && heads.latestSignedHead(latest.hash);
    if (signed !== undefined) {
      events.headSigned(fromBinary(HeadStatementSchema, signed.statement), signed);
    }
  });
  return events;
}
