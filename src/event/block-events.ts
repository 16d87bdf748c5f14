/** Events of a block, in order, as sent to subscribers. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Block, BlockHeader, TransactionBody } from "../../gen/gatehouse/chain/v1/block_pb.js";
import {
  EventKind,
  ProgramChange,
  TransactionOutcome,
  type WatchResponseSchema,
} from "../../gen/gatehouse/event/v1/event_pb.js";
import type { StorageOperation } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { makeImmutable } from "../base/caches/immutable.js";
import { mapYielding } from "../base/async/yielding.js";
import type { Literal } from "../rpc/service.js";

/** Message of the stream; subscribers share the same immutable object. */
export type EventMessage = Literal<MessageInitShape<typeof WatchResponseSchema>>;

/** Stored block. */
export interface EventfulBlock {
  /** Block hash: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Hashes of the transactions, in order. */
  readonly transactionHashes: readonly string[];
  readonly block: Pick<Block, "transactions">;
}

/** Decoder of transactions. */
export interface TransactionReading {
  /** Decodes the encoded body of a transaction. */
  decode(body: Uint8Array): TransactionBody;
  /** Returns the address of the program that a transaction changes; undefined if it changes none. */
  addressOf(body: TransactionBody): string | undefined;
}

/** Subject of an event, for filters and access rules. */
export interface EventSubject {
  readonly kind: EventKind;
  /** Hash of the transaction; undefined if the event belongs to none. */
  readonly transaction: string | undefined;
  /** Address of the program whose access rule applies to the event; undefined for public events. */
  readonly address: string | undefined;
}

/** Event of a block. */
export interface LoggedEvent extends EventSubject {
  /** Position within the block; increases from event to event. */
  readonly position: number;
  readonly message: EventMessage;
  /** Redacted message for callers without read access to the program; undefined to send them nothing. */
  readonly withheld: EventMessage | undefined;
}

/** Events of one block. */
export interface BlockEvents {
  readonly number: bigint;
  readonly events: readonly LoggedEvent[];
  /** Distinct addresses of the programs that the transactions change. */
  readonly addresses: readonly string[];
  /** Approximate memory size. */
  readonly bytes: number;
}

/** Position of the block event, which follows all other events of the block. */
export const positionOfBlock = Infinity;

/**
 * Returns the cursor of an event: the block number, followed by the position within the block unless it is the block
 * event.
 */
export function cursorText(block: bigint, position: number): string {
  return position === positionOfBlock ? String(block) : `${block}.${position}`;
}

/** Approximate memory size of a block, an event and a program address, in bytes. */
const blockBytes = 1_500;
const eventBytes = 1_200;
const addressBytes = 100;

type Happening = NonNullable<EventMessage["event"]>;

/**
 * Returns the events of a block. Each transaction takes two positions: its own event, then that of its effect. The last
 * transaction that adds a commitment carries the one commitments event of the block.
 */
export async function listEvents(
  { hash, header, transactionHashes, block }: EventfulBlock,
  reading: TransactionReading,
): Promise<BlockEvents> {
  const { number } = header;
  const events: LoggedEvent[] = [];
  const addresses = new Set<string>();
  const commitments: string[] = [];
  let fieldBytes = 0;

  const write = (position: number, event: Happening): EventMessage =>
    makeImmutable({ cursor: cursorText(number, position), blockNumber: number, event });

  const bodies = await mapYielding(block.transactions, ({ body }) => reading.decode(body));
  const lastCommitment = bodies.findLastIndex(({ operation }) => commitmentOf(operation) !== undefined);
  bodies.forEach((body, index) => {
    const transaction = transactionHashes[index]!;
    const address = reading.addressOf(body);
    const position = 2 * index;
    const subject = { transaction, address };
    events.push({
      ...{ ...subject, kind: EventKind.TRANSACTION, position },
      message: write(position, included(transaction, index, body, address)),
      withheld: address === undefined ? undefined : write(position, included(transaction, index)),
    });
    if (address !== undefined) {
      addresses.add(address);
    }
    const commitment = commitmentOf(body.operation);
    if (commitment !== undefined) {
      commitments.push(commitment);
    }
    const effect =
      index === lastCommitment
        ? ({ case: "commitments", value: { commitments, root: header.commitmentRoot ?? "" } } as const)
        : effectOf(body.operation, { transaction, address });
    if (effect !== undefined) {
      const message = write(position + 1, effect);
      events.push({ ...subject, kind: kindOf(effect), position: position + 1, message, withheld: undefined });
      fieldBytes += effect.case === "program" ? 2 * (effect.value.fields?.join().length ?? 0) : 0;
    }
  });
  const own = { hash, header, transactionCount: bodies.length };
  events.push({
    ...{ kind: EventKind.BLOCK, transaction: undefined, address: undefined, position: positionOfBlock },
    message: write(positionOfBlock, { case: "block", value: own }),
    withheld: undefined,
  });
  const bytes =
    blockBytes +
    events.length * eventBytes +
    addresses.size * addressBytes +
    commitments.length * addressBytes +
    fieldBytes;
  return { number, events, addresses: [...addresses], bytes };
}

/** Returns the event of an included transaction; redacted if the body is omitted. */
function included(hash: string, index: number, body?: TransactionBody, storageAddress?: string): Happening {
  return {
    case: "transaction",
    value: {
      ...{ hash, index, outcome: TransactionOutcome.INCLUDED, withheld: body === undefined },
      ...(body !== undefined && { sender: body.sender, nonce: body.nonce }),
      ...(storageAddress !== undefined && { storageAddress }),
    },
  };
}

function commitmentOf(operation: TransactionBody["operation"]): string | undefined {
  return operation.case === "zk" && operation.value.operation.case === "addCommitment"
    ? operation.value.operation.value.commitment
    : undefined;
}

/**
 * Returns the effect of a single transaction. Commitments are excluded, because one event reports all commitments of
 * the block.
 */
function effectOf(
  operation: TransactionBody["operation"],
  { transaction, address }: Pick<EventSubject, "transaction" | "address">,
): Happening | undefined {
  if (operation.case === "storage" && address !== undefined) {
    const value = { storageAddress: address, transactionHash: transaction!, ...changeOf(operation.value) };
    return { case: "program", value };
  }
  if (operation.case === "zk" && operation.value.operation.case === "spendNullifier") {
    const { nullifierHash } = operation.value.operation.value;
    return { case: "nullifier", value: { nullifierHash, transactionHash: transaction! } };
  }
  return undefined;
}

function changeOf({ operation }: StorageOperation): { readonly change: ProgramChange; readonly fields?: string[] } {
  switch (operation.case) {
    case "createProgram":
      return { change: ProgramChange.CREATED };
    case "writeProgram":
      return { change: ProgramChange.WRITTEN };
    case "updateAccess":
      return { change: ProgramChange.ACCESS };
    case "deleteProgram":
      return { change: ProgramChange.DELETED };
    case "setField":
    case "setItem":
    case "appendItem":
    case "deleteField":
    case "deleteItem":
      return { change: ProgramChange.FIELDS, fields: [operation.value.field] };
    case undefined:
      throw new Error("A block has an empty operation.");
  }
}

const kinds = {
  block: EventKind.BLOCK,
  transaction: EventKind.TRANSACTION,
  program: EventKind.PROGRAM,
  nullifier: EventKind.NULLIFIER,
  commitments: EventKind.COMMITMENTS,
  head: EventKind.HEAD,
  progress: EventKind.UNSPECIFIED,
} as const;

/** Returns the kind of an event, as used by filters. */
function kindOf({ case: name }: Happening): EventKind {
  return name === undefined ? EventKind.UNSPECIFIED : kinds[name];
}
