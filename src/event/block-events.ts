/** What a block is to those who watch: its events, in their order. */
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

/** A message of the stream; many watchers are given the same. */
export type EventMessage = Literal<MessageInitShape<typeof WatchResponseSchema>>;

/** A block of the database. */
export interface EventfulBlock {
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
  readonly header: BlockHeader;
  /** Of its transactions, in their order. */
  readonly transactionHashes: readonly string[];
  readonly block: Pick<Block, "transactions">;
}

/** How transactions are read. */
export interface TransactionReading {
  /** What a transaction says, by its encoded body. */
  decode(body: Uint8Array): TransactionBody;
  /** Address of the program that it changes; undefined where it changes none. */
  addressOf(body: TransactionBody): string | undefined;
}

/** What an event is of: what filters and access rules decide on. */
export interface EventSubject {
  readonly kind: EventKind;
  /** Hash of the transaction; undefined where it is of none. */
  readonly transaction: string | undefined;
  /** The program whose rule says who may hear of it; undefined where everybody may. */
  readonly address: string | undefined;
}

/** An event of a block. */
export interface LoggedEvent extends EventSubject {
  /** Where it is in its block: later ones have larger numbers. */
  readonly place: number;
  readonly message: EventMessage;
  /** What those hear who may not read its program; undefined for nothing. */
  readonly withheld: EventMessage | undefined;
}

/** All events of a block. */
export interface BlockEvents {
  readonly number: bigint;
  readonly events: readonly LoggedEvent[];
  /** The programs that its transactions change, each once. */
  readonly addresses: readonly string[];
  /** Roughly what this takes in memory. */
  readonly bytes: number;
}

/** The place of a block itself, after all that is in it. */
export const placeOfBlock = Infinity;

/** Where an event is in the stream: the number of its block, and its place in there, where it is not the block's own. */
export function cursorText(block: bigint, place: number): string {
  return place === placeOfBlock ? String(block) : `${block}.${place}`;
}

/** Roughly what a block, an event and the address of a program take. */
const blockBytes = 1_500;
const eventBytes = 1_200;
const addressBytes = 100;

type Happening = NonNullable<EventMessage["event"]>;

/** Takes a block apart. Each transaction has two places: its own, and that of its effect after it. */
export async function listEvents(
  { hash, header, transactionHashes, block }: EventfulBlock,
  reading: TransactionReading,
): Promise<BlockEvents> {
  const { number } = header;
  const events: LoggedEvent[] = [];
  const addresses = new Set<string>();
  const commitments: string[] = [];
  let fieldBytes = 0;

  const write = (place: number, event: Happening): EventMessage =>
    makeImmutable({ cursor: cursorText(number, place), blockNumber: number, event });

  const bodies = await mapYielding(block.transactions, ({ body }) => reading.decode(body));
  const lastCommitment = bodies.findLastIndex(({ operation }) => commitmentOf(operation) !== undefined);
  bodies.forEach((body, index) => {
    const transaction = transactionHashes[index]!;
    const address = reading.addressOf(body);
    const place = 2 * index;
    const subject = { transaction, address };
    events.push({
      ...{ ...subject, kind: EventKind.TRANSACTION, place },
      message: write(place, included(transaction, index, body, address)),
      withheld: address === undefined ? undefined : write(place, included(transaction, index)),
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
      const message = write(place + 1, effect);
      events.push({ ...subject, kind: kindOf(effect), place: place + 1, message, withheld: undefined });
      fieldBytes += effect.case === "program" ? 2 * (effect.value.fields?.join().length ?? 0) : 0;
    }
  });
  const own = { hash, header, transactionCount: bodies.length };
  events.push({
    ...{ kind: EventKind.BLOCK, transaction: undefined, address: undefined, place: placeOfBlock },
    message: write(placeOfBlock, { case: "block", value: own }),
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

/** What is told of a transaction in a block; without its body, what strangers are told. */
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

/** What a transaction by itself does; what it adds to the tree is told for the whole block. */
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
      throw new Error("A block holds an operation that says nothing to do.");
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

/** The kind by which filters know what happened. */
function kindOf({ case: name }: Happening): EventKind {
  return name === undefined ? EventKind.UNSPECIFIED : kinds[name];
}
