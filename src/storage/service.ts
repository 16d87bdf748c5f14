/** Storage service: reads of programs, each after an access check. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ProgramEncoding, StorageLocation, type StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { RpcError } from "../rpc/errors.js";
import { defaultPageSize, createPageToken, pageNumber, pagePosition, readPageToken } from "../rpc/parameters.js";
import { memoize } from "../base/caches/read-cache.js";
import type { Call, Implementation } from "../rpc/service.js";
import { toAccessControl } from "./programs/access-control.js";
import { createArrayReads } from "./programs/array-reads.js";
import { type ReadProgramHistory, toChange } from "./programs/history.js";
import { requireField, requireObject, requireReadable } from "./programs/read-guards.js";
import { type ListPage, readPage, toPage } from "./documents/paging.js";
import type { Field, ProgramEntry, Programs, FullProgram } from "./programs/programs.js";
import { itemNotFound } from "./programs/rejections.js";
import { valueTypes } from "./documents/value-types.js";

export function createStorageService(
  programs: Programs,
  readHistory: ReadProgramHistory,
): Implementation<typeof StorageService> {
  const programResponse = memoize(toProgram);
  const dataResponse = memoize(toData);
  const summaryResponse = memoize(toSummary);
  const arrays = createArrayReads(programs);

  async function readField(address: string, name: string, call: Call): Promise<Field | undefined> {
    const { record, field } = requireReadable(await programs.findWithField(address, name), call);
    requireObject(record);
    return field;
  }

  return {
    async getProgram({ storageAddress }, call) {
      return programResponse(requireReadable(await programs.findWithData(storageAddress), call));
    },

    async getProgramData({ storageAddress }, call) {
      return dataResponse(requireReadable(await programs.findWithData(storageAddress), call));
    },

    async listFields({ storageAddress }, call) {
      const { record, names } = requireReadable(await programs.findWithFieldNames(storageAddress), call);
      requireObject(record);
      return { success: true, storageAddress, fields: names };
    },

    async getField({ storageAddress, field }, call) {
      const { value, type } = requireField(await readField(storageAddress, field, call), field);
      return { success: true, storageAddress, field, value, type: valueTypes[type] };
    },

    async getFieldItem({ storageAddress, field, index: requested, fromEnd, withLength }, call) {
      const array = await (fromEnd ? arrays.readFromEnd : arrays.read)(storageAddress, field, requested, call);
      const index = fromEnd ? array.length() - 1 - requested : requested;
      const value = array.itemAt(index);
      if (value === undefined) {
        throw new RpcError(...itemNotFound(array.length()));
      }
      return {
        ...{ success: true, storageAddress, field, index, value },
        ...(withLength && { arrayLength: array.length() }),
      };
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
      requireReadable(await programs.findWithField(storageAddress, ""), call);
      const before = block === undefined ? undefined : { blockNumber: BigInt(block), position: Number(position) };
      const { changes, next, fromBlock } = await readHistory(storageAddress, before, pageSize, call.signal);
      return {
        ...{ success: true, storageAddress, changes: changes.map(toChange), historyFromBlock: fromBlock },
        ...(next && { nextPageToken: createPageToken("history", next.blockNumber, next.position) }),
      };
    },

    async listProgramsByOwner({ owner, ...page }, { caller }) {
      const list = (requested: ListPage): Promise<ProgramEntry[]> =>
        programs.listByOwner(owner, caller.identity, requested);
      const { entries, ...next } = await readPage(toPage(page), list);
      return { success: true, programs: entries.map(summaryResponse), count: entries.length, ...next };
    },

    async searchPrograms({ query, exact, ...page }, { caller }) {
      const list = (requested: ListPage): Promise<ProgramEntry[]> =>
        programs.search(query, exact, caller.identity, requested);
      const { entries, ...next } = await readPage(toPage(page), list);
      return { success: true, query, programs: entries.map(summaryResponse), count: entries.length, ...next };
    },
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
