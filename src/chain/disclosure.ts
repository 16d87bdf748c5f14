/**
 * What of a block is told to whom: the transactions that a caller may read, and of the others their hashes, with which the
 * block can still be checked. Every route that gives blocks goes through here.
 */
import { create, fromBinary } from "@bufbuild/protobuf";
import {
  type Block,
  type Transaction,
  type TransactionBody,
  TransactionBodySchema,
  TransactionSchema,
} from "../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../base/hash.js";
import { mapYielding } from "../base/yielding.js";

/**
 * Says of each transaction, in their order, whether the caller may read it now.
 *
 * @param identity 0x and 64 lower-case hex digits; undefined for an anonymous caller.
 */
export type MayRead = (
  transactions: readonly TransactionBody[],
  identity: string | undefined,
) => Promise<readonly boolean[]>;

/** Gives of a block of the database what the caller may have. */
export type Disclose = (block: Block, identity: string | undefined) => Promise<Block>;

/** For those who may have everything. */
export const discloseAll: Disclose = (block) => Promise.resolve(block);

/** Bodies that are read before the event loop is yielded to: a small one takes some microseconds. */
const readBatchSize = 500;

/** Discloses what may be read. */
export function createDisclosure(mayRead: MayRead): Disclose {
  return async (block, identity) => {
    const { transactions } = block;
    const bodies = await mapYielding(transactions, readBatchSize, ({ body }) =>
      fromBinary(TransactionBodySchema, body),
    );
    const readable = await mayRead(bodies, identity);
    return {
      ...block,
      transactions: transactions.map((each, i) => (readable[i] === true ? each : withhold(each))),
    };
  };
}

function withhold({ body }: Transaction): Transaction {
  return create(TransactionSchema, { withheldHash: sha256(body) });
}
