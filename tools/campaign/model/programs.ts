/** Expected state of programs and commitments after each block. */
import type { Change, JsonObject } from "./history.js";

/** Program after a block; `document` is undefined if it is deleted. */
interface Version {
  readonly block: number;
  readonly document: JsonObject | undefined;
}

export function createProgramStates() {
  const versions = new Map<string, Version[]>();
  const commitments = new Set<string>();
  const latest = (address: string): JsonObject | undefined => versions.get(address)?.at(-1)?.document;
  return {
    /** Applies a change. Returns a message if it cannot be applied. */
    apply(change: Change, block: number): string | undefined {
      if (change.kind === "commit") {
        return commitments.size === commitments.add(change.commitment).size
          ? `The commitment ${change.commitment} is added twice.`
          : undefined;
      }
      const before = latest(change.address);
      const isNew = versions.get(change.address) === undefined;
      if (change.kind === "create" ? !isNew : before === undefined) {
        return `${change.address} is ${isNew ? "not there" : before === undefined ? "deleted" : "there"}, for "${change.kind}".`;
      }
      const document = applyChange(before ?? {}, change);
      if (typeof document === "string") {
        return document;
      }
      const history = versions.get(change.address) ?? [];
      versions.set(change.address, [...history, { block, document }]);
      return undefined;
    },
    /** Returns the documents of a program after each block in this range; undefined for a missing program. */
    between(address: string, fromBlock: number, toBlock: number): (JsonObject | undefined)[] {
      const history = versions.get(address) ?? [];
      const first = history.findLastIndex(({ block }) => block <= fromBlock);
      const possible = history.filter(({ block }, i) => i >= first && block <= toBlock).map(({ document }) => document);
      return first === -1 ? [undefined, ...possible] : possible;
    },
    /** Returns the document of a program after all blocks. */
    latest,
    get addresses() {
      return [...versions.keys()];
    },
    /** Returns the number of commitments. */
    leafCount: () => commitments.size,
  };
}

type ProgramChange = Exclude<Change, { kind: "commit" }>;

/** Returns the document after a change; undefined if it is deleted, a message if the change cannot be applied. */
function applyChange(before: JsonObject, change: ProgramChange): JsonObject | undefined | string {
  switch (change.kind) {
    case "create":
      return change.document;
    case "delete":
      return undefined;
    case "set":
      return { ...before, [change.field]: change.value };
    case "delete field": {
      const { [change.field]: removed, ...rest } = before;
      return removed === undefined ? `The field ${change.field} of ${change.address} is not there.` : rest;
    }
    default: {
      const list = before[change.field];
      const index = change.kind === "append" ? 0 : change.index;
      if (!Array.isArray(list) || (change.kind !== "append" && index >= list.length)) {
        return `The item ${index} of ${change.field} of ${change.address} is not there, for "${change.kind}".`;
      }
      return { ...before, [change.field]: applyListChange(list, change) };
    }
  }
}

type ItemChange = Extract<ProgramChange, { kind: "append" | "set item" | "delete item" }>;

function applyListChange(list: readonly unknown[], change: ItemChange): unknown[] {
  switch (change.kind) {
    case "append":
      return [...list, change.value];
    case "set item":
      return list.with(change.index, change.value);
    case "delete item":
      return list.toSpliced(change.index, 1);
  }
}
