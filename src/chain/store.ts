/** Blocks and pending transactions in the database. */
import type { Database } from "../db/connect.js";

/** The newest block. */
export interface ChainHead {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly timestampMs: bigint;
  /** Hash of block 0. */
  readonly genesisHash: string;
}

/** The stored chain. */
export interface ChainStore {
  /** The newest block; undefined while there is none. */
  head(): Promise<ChainHead | undefined>;
  /** The text of block 0; undefined while there is none. */
  genesisText(): Promise<string | undefined>;
  /** Makes block 0. Rejects when there is one. */
  insertGenesis(genesis: { readonly text: string; readonly hash: string; readonly timestampMs: number }): Promise<void>;
  /** Number of pending transactions. */
  pendingCount(): Promise<number>;
}

/** Builds the store. */
export function createChainStore({ read, write }: Database): ChainStore {
  return {
    async head() {
      const rows = (await read("blocks as head")
        .join("blocks as genesis", "genesis.number", read.raw("0"))
        .orderBy("head.number", "desc")
        .limit(1)
        .select({
          number: "head.number",
          hash: "head.hash",
          timestampMs: "head.timestamp_ms",
          genesisHash: "genesis.hash",
        })) as { number: number; hash: string; timestampMs: number; genesisHash: string }[];
      const [row] = rows;
      return row && { ...row, number: BigInt(row.number), timestampMs: BigInt(row.timestampMs) };
    },
    async genesisText() {
      const row = await read<{ number: number; genesis: string }>("blocks").where("number", 0).first("genesis");
      return row?.genesis;
    },
    async insertGenesis({ text, hash, timestampMs }) {
      await write("blocks").insert({ number: 0, hash, timestamp_ms: timestampMs, genesis: text });
    },
    async pendingCount() {
      const [row] = (await read("mempool").count({ count: "*" })) as { count: number | string }[];
      return Number(row?.count ?? 0);
    },
  };
}
