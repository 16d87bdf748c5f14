/** What programs and the tree hold after each block, by what the transactions in it say. */
import type { Change, JsonObject } from "./history.js";

/** A program after a block; no document when it is deleted. */
interface Version {
  readonly block: number;
  readonly document: JsonObject | undefined;
}

/** The state. */
export interface ProgramStates {
  /** Makes a change. @returns what keeps it from being made */
  apply(change: Change, block: number): string | undefined;
  /** What a program was after the blocks from this one to that one; undefined is a program that is not there. */
  between(address: string, fromBlock: number, toBlock: number): readonly (JsonObject | undefined)[];
  /** What it holds after all blocks. */
  readonly latest: (address: string) => JsonObject | undefined;
  readonly addresses: readonly string[];
  /** How many commitments there are. */
  leafCount(): number;
}

/** Builds it, with nothing in it. */
export function createProgramStates(): ProgramStates {
  const versions = new Map<string, Version[]>();
  const commitments = new Set<string>();
  const latest = (address: string): JsonObject | undefined => versions.get(address)?.at(-1)?.document;
  return {
    apply(change, block) {
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
      const document = changed(before ?? {}, change);
      if (typeof document === "string") {
        return document;
      }
      const all = versions.get(change.address) ?? [];
      versions.set(change.address, [...all, { block, document }]);
      return undefined;
    },
    between(address, fromBlock, toBlock) {
      const all = versions.get(address) ?? [];
      const first = all.findLastIndex(({ block }) => block <= fromBlock);
      const possible = all.filter(({ block }, i) => i >= first && block <= toBlock).map(({ document }) => document);
      return first === -1 ? [undefined, ...possible] : possible;
    },
    latest,
    get addresses() {
      return [...versions.keys()];
    },
    leafCount: () => commitments.size,
  };
}

type ProgramChange = Exclude<Change, { kind: "commit" }>;

/** A document after a change, undefined when it is deleted; a sentence when it cannot be made. */
function changed(before: JsonObject, change: ProgramChange): JsonObject | undefined | string {
  switch (change.kind) {
    case "create":
      return change.document;
    case "delete":
      return undefined;
    case "set":
      return { ...before, [change.field]: change.value };
    case "delete field": {
      const { [change.field]: gone, ...rest } = before;
      return gone === undefined ? `The field ${change.field} of ${change.address} is not there.` : rest;
    }
    default: {
      const list = before[change.field];
      const index = change.kind === "append" ? 0 : change.index;
      if (!Array.isArray(list) || (change.kind !== "append" && index >= list.length)) {
        return `The item ${index} of ${change.field} of ${change.address} is not there, for "${change.kind}".`;
      }
      return { ...before, [change.field]: changedList(list, change) };
    }
  }
}

type ItemChange = Extract<ProgramChange, { kind: "append" | "set item" | "delete item" }>;

function changedList(list: readonly unknown[], change: ItemChange): unknown[] {
  switch (change.kind) {
    case "append":
      return [...list, change.value];
    case "set item":
      return list.with(change.index, change.value);
    case "delete item":
      return list.toSpliced(change.index, 1);
  }
}
