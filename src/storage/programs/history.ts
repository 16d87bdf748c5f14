/** What changed a program, as the services speak of it. */
import { ProgramChangeKind } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import type { StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";

/** Where a change is in the chain. */
export interface ChangePlace {
  readonly blockNumber: bigint;
  /** Of its transaction in the block, from 0. */
  readonly position: number;
}

/** A change of a program. */
export interface ProgramChange {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  /** Of the block. */
  readonly timestampMs: bigint;
  readonly transactionHash: string;
  readonly sender: string;
  readonly operation: StorageOperation;
}

/** A page of changes, newest first. */
export interface ProgramHistoryPage {
  readonly changes: readonly ProgramChange[];
  /** Where the next page goes on; undefined where there is none. */
  readonly next: ChangePlace | undefined;
  /** What older blocks changed is not known. */
  readonly fromBlock: bigint;
}

/** Reads what changed a program, of before a place where one is given. Who may know it is checked before. */
export type ReadProgramHistory = (
  address: string,
  before: ChangePlace | undefined,
  pageSize: number,
  signal: AbortSignal,
) => Promise<ProgramHistoryPage>;

const kinds = {
  createProgram: ProgramChangeKind.CREATE_PROGRAM,
  writeProgram: ProgramChangeKind.WRITE_PROGRAM,
  setField: ProgramChangeKind.SET_FIELD,
  setItem: ProgramChangeKind.SET_ITEM,
  appendItem: ProgramChangeKind.APPEND_ITEM,
  deleteField: ProgramChangeKind.DELETE_FIELD,
  deleteItem: ProgramChangeKind.DELETE_ITEM,
  updateAccess: ProgramChangeKind.UPDATE_ACCESS,
  // Of a program that is deleted nothing is read.
  deleteProgram: ProgramChangeKind.UNSPECIFIED,
} as const;

/** A change in the words of the contract. */
export function toChange({ operation: { operation }, ...change }: ProgramChange) {
  return {
    ...change,
    kind: operation.case === undefined ? ProgramChangeKind.UNSPECIFIED : kinds[operation.case],
    fields: operation.value !== undefined && "field" in operation.value ? [operation.value.field] : [],
  };
}
