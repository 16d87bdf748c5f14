/** Storage service: reads of programs, each after an access check. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { StorageOperation } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import {
  ProgramChangeKind,
  ProgramEncoding,
  StorageLocation,
  type StorageService,
} from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { RpcError } from "../rpc/errors.js";
import { defaultPageSize, createPageToken, pageNumber, pagePosition, readPageToken } from "../rpc/parameters.js";
import { memoize } from "../base/caches/read-cache.js";
import type { Call, Implementation } from "../rpc/service.js";
import { addressForm } from "../base/crypto/signing-payloads.js";
import { countItems, membersOf, sliceItem } from "./documents/document.js";
import { toAccessControl } from "./programs/access.js";
import { requireField, requireObject, requireReadable } from "./programs/read-guards.js";
import type { Field, FieldPortion, FullProgram, ListPage, ProgramEntry, Programs } from "./programs/programs.js";
import { itemNotFound, notAnArray, valueTypes } from "./programs/rejections.js";

export interface ChangePosition {
  readonly blockNumber: bigint;
  /** Index of the transaction in the block, from 0. */
  readonly position: number;
}

export interface ProgramChange {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly timestampMs: bigint;
  readonly transactionHash: string;
  readonly sender: string;
  readonly operation: StorageOperation;
}

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

export function createStorageService(
  programs: Programs,
  readHistory: ReadProgramHistory,
): Implementation<typeof StorageService> {
  const programResponse = memoize(toProgram);
  const dataResponse = memoize(toData);
  const fieldsResponse = memoize(toFields);
  const summaryResponse = memoize(toSummary);

  async function readField(address: string, name: string, call: Call): Promise<Field | undefined> {
    const { record, field } = requireReadable(await programs.findWithField(address, name, call.caller), call);
    requireObject(record);
    return field;
  }

  /** Reads an array field, or the chunk of it that holds the item. */
  async function readArray(address: string, name: string, index: number, call: Call): Promise<FieldPortion> {
    const { record, field: found } = requireReadable(
      await programs.findWithItem(address, name, index, call.caller),
      call,
    );
    requireObject(record);
    const field = requireField(found, name);
    if (field.type !== "array") {
      throw new RpcError(...notAnArray(field.type));
    }
    return field;
  }

  /**
   * Reads the part that holds an item counted from the end. The chunk depends on the array's length, so the read
   * repeats until the length is the one assumed.
   */
  async function readArrayFromEnd(address: string, name: string, index: number, call: Call): Promise<FieldPortion> {
    for (let length = 0; ;) {
      const array = await readArray(address, name, Math.max(0, length - 1 - index), call);
      if (array.chunk === undefined || array.chunk.arrayItems === length) {
        return array;
      }
      length = array.chunk.arrayItems;
    }
  }

  /**
   * Reads one page of programs, and the token of the next page if there is one. The token contains only an address that
   * the page shows. It does not reveal the number of hidden programs between two listed programs.
   *
   * @throws RpcError INVALID_REQUEST
   */
  async function readPage(
    { limit = defaultPageSize, offset = 0, pageToken }: PageRequest,
    list: (page: ListPage) => Promise<readonly ProgramEntry[]>,
  ) {
    const [after] = readPageToken("programs", [addressForm], pageToken) ?? [];
    const found = await list({ limit: limit + 1, offset, after });
    const entries = found.slice(0, limit);
    const last = found.length > entries.length ? entries.at(-1) : undefined;
    return {
      ...{ programs: entries.map(summaryResponse), count: entries.length },
      ...(last && { nextPageToken: createPageToken("programs", last.address) }),
    };
  }

  return {
    async getProgram({ storageAddress }, call) {
      return programResponse(requireReadable(await programs.findWithData(storageAddress, call.caller), call));
    },

    async getProgramData({ storageAddress }, call) {
      return dataResponse(requireReadable(await programs.findWithData(storageAddress, call.caller), call));
    },

    async listFields({ storageAddress }, call) {
      const found = requireReadable(await programs.findWithData(storageAddress, call.caller), call);
      requireObject(found.record);
      return fieldsResponse(found);
    },

    async getField({ storageAddress, field }, call) {
      const { value, type } = requireField(await readField(storageAddress, field, call), field);
      return { success: true, storageAddress, field, value, type: valueTypes[type] };
    },

    async getFieldItem({ storageAddress, field, index: requested, fromEnd, withLength }, call) {
      const array = await (fromEnd ? readArrayFromEnd : readArray)(storageAddress, field, requested, call);
      const length = (): number => array.chunk?.arrayItems ?? countItems(array.value);
      const index = fromEnd ? length() - 1 - requested : requested;
      const value = sliceItem(array.value, index - (array.chunk?.firstItem ?? 0));
      if (value === undefined) {
        throw new RpcError(...itemNotFound(length()));
      }
      return { success: true, storageAddress, field, index, value, ...(withLength && { arrayLength: length() }) };
    },

    async hasField({ storageAddress, field }, call) {
      const found = await readField(storageAddress, field, call);
      return { success: true, storageAddress, field, exists: found !== undefined };
    },

    async getFieldType({ storageAddress, field }, call) {
      const { type } = requireField(await readField(storageAddress, field, call), field);
      return { success: true, storageAddress, field, type: valueTypes[type] };
    },

    async listProgramHistory({ storageAddress, pageSize = defaultPageSize, pageToken }, call) {
      const [block, position] = readPageToken("history", [pageNumber, pagePosition], pageToken) ?? [];
      requireReadable(await programs.findWithField(storageAddress, "", call.caller), call);
      const before = block === undefined ? undefined : { blockNumber: BigInt(block), position: Number(position) };
      const { changes, next, fromBlock } = await readHistory(storageAddress, before, pageSize, call.signal);
      return {
        ...{ success: true, storageAddress, changes: changes.map(toChange), historyFromBlock: fromBlock },
        ...(next && { nextPageToken: createPageToken("history", next.blockNumber, next.position) }),
      };
    },

    async listProgramsByOwner({ owner, ...request }, { caller }) {
      const page = await readPage(request, (part) => programs.listByOwner(owner, caller.identity, part));
      return { success: true, ...page };
    },

    async searchPrograms({ query, exact, ...request }, { caller }) {
      const page = await readPage(request, (part) => programs.search(query, exact, caller.identity, part));
      return { success: true, query, ...page };
    },
  };
}

interface PageRequest {
  readonly limit?: number;
  readonly offset?: number;
  readonly pageToken?: string;
}

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

function toChange({ operation: { operation }, ...change }: ProgramChange) {
  return {
    ...change,
    kind: operation.case === undefined ? ProgramChangeKind.UNSPECIFIED : kinds[operation.case],
    fields: operation.value !== undefined && "field" in operation.value ? [operation.value.field] : [],
  };
}

function toProgram({ record, data }: FullProgram) {
  return {
    success: true,
    storageAddress: record.address,
    owner: record.access.owner,
    programName: record.name,
    encoding: encodings[record.encoding],
    data,
    metadata: record.metadata,
    acl: toAccessControl(record.access),
    storageLocation: StorageLocation.ONCHAIN,
    sizeBytes: record.sizeBytes,
    createdAt: timestampFromMs(record.createdMs),
    updatedAt: timestampFromMs(record.updatedMs),
  };
}

function toData({ record, data }: FullProgram) {
  return { success: true, storageAddress: record.address, data };
}

function toFields({ record, data = "{}" }: FullProgram) {
  return { success: true, storageAddress: record.address, fields: membersOf(data).map(({ name }) => name) };
}

const encodings = { json: ProgramEncoding.JSON, binary: ProgramEncoding.BINARY } as const;

export function toSummary(entry: ProgramEntry) {
  return {
    storageAddress: entry.address,
    programName: entry.name,
    owner: entry.owner,
    encoding: encodings[entry.encoding],
    sizeBytes: entry.sizeBytes,
    storageLocation: StorageLocation.ONCHAIN,
    createdAt: timestampFromMs(entry.createdMs),
    updatedAt: timestampFromMs(entry.updatedMs),
  };
}
