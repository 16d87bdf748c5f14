/** Changes of programs, as the services return them. */
import { ProgramChangeKind } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import type { StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";

/** Position of a change in the chain. */
export interface ChangePosition {
  readonly blockNumber: bigint;
  /** Index of the transaction in the block, from 0. */
  readonly position: number;
}

/** Change of a program by one operation. */
export interface ProgramChange {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  /** Time of the block. */
  readonly timestampMs: bigint;
  readonly transactionHash: string;
  readonly sender: string;
  readonly operation: StorageOperation;
}

/** Page of changes, latest first. */
export interface ProgramHistoryPage {
  readonly changes: readonly ProgramChange[];
  /** Position at which the next page starts; undefined on the last page. */
  readonly next: ChangePosition | undefined;
  /** First block with known changes. Changes in older blocks are unknown. */
  readonly fromBlock: bigint;
}

/**
 * Reads the changes of a program, latest first, starting before a position if one is given. The caller must have
 * checked read access.
 */
export type ReadProgramHistory = (
  address: string,
  before: ChangePosition | undefined,
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
  // Unreachable: deleted programs cannot be read, so their history is not either.
  deleteProgram: ProgramChangeKind.UNSPECIFIED,
} as const;

/** Converts a change to its Protobuf form. */
export function toChange({ operation: { operation }, ...change }: ProgramChange) {
  return {
    ...change,
    kind: operation.case === undefined ? ProgramChangeKind.UNSPECIFIED : kinds[operation.case],
    fields: operation.value !== undefined && "field" in operation.value ? [operation.value.field] : [],
  };
}
