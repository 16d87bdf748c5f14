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
import { mapYielding, requestWork } from "../base/async/yielding.js";
import type { Literal } from "../rpc/service.js";

/** Message of an event stream; subscribers share the same immutable object. */
export type EventMessage = Literal<MessageInitShape<typeof WatchResponseSchema>>;

/** Stored block from which events are created, with the hashes of its transactions. */
export interface SourceBlock {
  readonly hash: string;
  readonly header: BlockHeader;
  readonly transactionHashes: readonly string[];
  readonly block: Pick<Block, "transactions">;
}

export interface TransactionDecoder {
  decode(body: Uint8Array): TransactionBody;
  /** Returns the address of the program that a transaction changes; undefined if it changes none. */
  addressOf(body: TransactionBody): string | undefined;
}

/** Properties of an event that filters and access rules use. */
export interface EventSubject {
  readonly kind: EventKind;
  readonly transaction: string | undefined;
  /** Address of the program whose access rule applies to the event; undefined for public events. */
  readonly address: string | undefined;
}

export interface LoggedEvent extends EventSubject {
  /** Position within the block; increases from event to event. */
  readonly position: number;
  readonly message: EventMessage;
  /** Redacted message for callers without read access to the program; undefined to send them nothing. */
  readonly redacted: EventMessage | undefined;
}

export interface BlockEvents {
  readonly number: bigint;
  readonly events: readonly LoggedEvent[];
  /** Distinct addresses of the programs that the transactions change. */
  readonly addresses: readonly string[];
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

type EventContent = NonNullable<EventMessage["event"]>;

/**
 * Returns the events of a block. Each transaction has two positions: one for its own event, one for that of its change.
 * A block has one event for all its commitments, at the position of the last transaction that adds a commitment.
 */
export async function listEvents(
  { hash, header, transactionHashes, block }: SourceBlock,
  decoder: TransactionDecoder,
): Promise<BlockEvents> {
  const { number } = header;
  const events: LoggedEvent[] = [];
  const addresses = new Set<string>();
  const commitments: string[] = [];
  let fieldBytes = 0;

  const createMessage = (position: number, event: EventContent): EventMessage =>
    makeImmutable({ cursor: cursorText(number, position), blockNumber: number, event });

  const bodies = await mapYielding(block.transactions, ({ body }) => decoder.decode(body), requestWork);
  const lastCommitment = bodies.findLastIndex(({ operation }) => commitmentOf(operation) !== undefined);
  bodies.forEach((body, index) => {
    const transaction = transactionHashes[index]!;
    const address = decoder.addressOf(body);
    const position = 2 * index;
    const subject = { transaction, address };
    events.push({
      ...{ ...subject, kind: EventKind.TRANSACTION, position },
      message: createMessage(position, included(transaction, index, body, address)),
      redacted: address === undefined ? undefined : createMessage(position, included(transaction, index)),
    });
    if (address !== undefined) {
      addresses.add(address);
    }
    const commitment = commitmentOf(body.operation);
    if (commitment !== undefined) {
      commitments.push(commitment);
    }
    const change =
      index === lastCommitment
        ? ({ case: "commitments", value: { commitments, root: header.commitmentRoot ?? "" } } as const)
        : changeOf(body.operation, { transaction, address });
    if (change !== undefined) {
      const message = createMessage(position + 1, change);
      events.push({ ...subject, kind: kinds[change.case], position: position + 1, message, redacted: undefined });
      fieldBytes += change.case === "program" ? 2 * (change.value.fields?.join().length ?? 0) : 0;
    }
  });
  const value = { hash, header, transactionCount: bodies.length };
  events.push({
    ...{ kind: EventKind.BLOCK, transaction: undefined, address: undefined, position: positionOfBlock },
    message: createMessage(positionOfBlock, { case: "block", value }),
    redacted: undefined,
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
function included(hash: string, index: number, body?: TransactionBody, storageAddress?: string): EventContent {
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

const kinds = {
  program: EventKind.PROGRAM,
  nullifier: EventKind.NULLIFIER,
  commitments: EventKind.COMMITMENTS,
} as const;
type ChangeContent = EventContent & { readonly case: keyof typeof kinds };

/** Returns the event of a change to a program or of a spent nullifier; undefined for other operations. */
function changeOf(
  operation: TransactionBody["operation"],
  { transaction, address }: Pick<EventSubject, "transaction" | "address">,
): ChangeContent | undefined {
  if (operation.case === "storage" && address !== undefined) {
    const value = { storageAddress: address, transactionHash: transaction!, ...programChangeOf(operation.value) };
    return { case: "program", value };
  }
  if (operation.case === "zk" && operation.value.operation.case === "spendNullifier") {
    const { nullifierHash } = operation.value.operation.value;
    return { case: "nullifier", value: { nullifierHash, transactionHash: transaction! } };
  }
  return undefined;
}

function programChangeOf({ operation }: StorageOperation): {
  readonly change: ProgramChange;
  readonly fields?: string[];
} {
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
