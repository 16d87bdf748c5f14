/**
 * Write buffer: rows as the transactions of a block see them. A row is read once; known rows are prefetched in bulk.
 * Changes stay in memory and roll back with their transaction. They are stored together, in a few statements per block,
 * even if transactions change the same row again and again.
 *
 * Until then no other code may change these rows, and queries do not see the changes.
 */
import { runYielding } from "../../base/async/yielding.js";
import type { BulkValue } from "./bulk-insert.js";
import type { Queries } from "../queries/database.js";
import { createTableQueries, type Side, type TableChanges, type TableShape, type WithinKey } from "./table-queries.js";

/** Buffered rows of one table. */
export interface BufferedTable<Row> {
  /** Reads all rows of groups with one query. */
  prefetch(groups: Iterable<string>): Promise<void>;
  /** Declares that a group is known to have no rows. */
  markEmpty(group: string): void;
  get(group: string, ...within: WithinKey): Promise<Row | undefined>;
  /** Returns the buffered state of a row, which may not be checked yet. */
  peek(group: string, ...within: WithinKey): Row | undefined;
  /** Returns the row of a group with this text in another column. At most one row may match. */
  find(group: string, column: keyof Row & string, text: string): Promise<Row | undefined>;
  /**
   * Finds the first or last row of a group among the keys that start with `prefix`. Returns the next part of its key, a
   * number. With `beyond`, considers only parts above it (first) or below it (last).
   */
  seek(group: string, prefix: readonly number[], side: Side, beyond?: number): Promise<number | undefined>;
  /**
   * Returns the rows of a group whose keys start with `prefix`, in key order. With `columns`, the rows have at least
   * these columns; without, all of them.
   */
  list(group: string, prefix?: readonly number[], columns?: readonly (keyof Row & string)[]): Promise<Row[]>;
  /** Adds a row that does not exist. */
  insert(row: Row): void;
  /** Replaces an existing row. */
  put(row: Row): void;
  /** Removes an existing row. */
  remove(group: string, ...within: WithinKey): void;
  /** Removes all rows of a group and returns their number. */
  clear(group: string): Promise<number>;
}

/** Write buffer over one database transaction. */
export interface WriteBuffer {
  readonly db: Queries;
  /**
   * Adds a table. Tables are stored in the order in which they are added, so add a table after those that it
   * references.
   */
  table<Row extends object>(shape: TableShape<Row>): BufferedTable<Row>;
  /** Runs work that changes rows, and rolls the changes back if the work throws. Savepoints do not nest or overlap. */
  savepoint<T>(work: () => Promise<T>): Promise<T>;
  /** Registers a function that runs if the current savepoint rolls back. Does nothing outside of a savepoint. */
  readonly onRollback: (undo: () => void) => void;
  /** Stores the changes in the database. */
  store(): Promise<void>;
}

/**
 * Relation of a buffered row to the row that the database has under the same key: there is none, it is the same, it is
 * an older version, or it is another row that was removed in the buffer.
 */
type InDatabase = "none" | "this" | "older" | "another";

interface BufferedRow<Row> {
  readonly row: Row | undefined;
  readonly inDatabase: InDatabase;
  /** Order of creation, in which new rows are stored. */
  readonly order: number;
  /** True if the row was compared with its checksum, or was created here. */
  isVerified: boolean;
}

interface Group<Row> {
  readonly buffered: Map<string, BufferedRow<Row>>;
  /** Keys of buffered rows that may have changed. */
  readonly changed: Set<string>;
  /** True if every row is buffered, so that any other key has no row. */
  isComplete: boolean;
  /** True if the rows in the database are to be deleted. */
  readonly isCleared: boolean;
  /** Savepoint that reset the group. Its rollback restores the previous group, so changes of rows need no undo step. */
  readonly resetBy: object | undefined;
}

/** Limit on rows of a group that stay buffered between transactions. Larger groups are stored and dropped. */
const maxBuffered = 1_000;
/** Limit on changed rows of a partly buffered group. A search in the database has to skip the removed ones. */
const maxChanged = 64;
/** Number of rows to collect between two yields to the event loop. */
const portionRows = 5_000;

/** Creates a write buffer over a database transaction, or over a read connection if nothing will be changed. */
export function createWriteBuffer(db: Queries): WriteBuffer {
  const tables: { store(): Promise<void>; isFull(): boolean }[] = [];
  let undo: (() => void)[] | undefined;
  const onRollback = (step: () => void): void => void undo?.push(step);
  const savepoints: Savepoints = { onRollback, current: () => undo };

  async function store(): Promise<void> {
    for (const table of tables) {
      await table.store();
    }
  }

  return {
    db,
    onRollback,
    store,
    table(shape) {
      const { table, ...stored } = createBufferedTable(db, shape, savepoints);
      tables.push(stored);
      return table;
    },
    async savepoint(work) {
      if (undo !== undefined) {
        throw new Error("Another savepoint is open.");
      }
      const steps: (() => void)[] = (undo = []);
      try {
        const result = await work();
        undo = undefined;
        if (tables.some((table) => table.isFull())) {
          await store();
        }
        return result;
      } catch (error) {
        undo = undefined;
        steps.toReversed().forEach((step) => step());
        throw error;
      }
    },
  };
}

/** Access of a table to savepoints. */
interface Savepoints extends Pick<WriteBuffer, "onRollback"> {
  /** Returns the identity of the current savepoint; undefined outside of one. */
  readonly current: () => object | undefined;
}

function createBufferedTable<Row extends object>(
  db: Queries,
  shape: TableShape<Row>,
  { onRollback, current }: Savepoints,
) {
  const groups = new Map<string, Group<Row>>();
  /** Names of groups that may have changed. */
  const changedGroups = new Set<string>();
  const queries = createTableQueries(db, shape);
  const values = (row: Row) => row as Readonly<Record<string, BulkValue>>;
  const [first, ...others] = shape.within;
  /** Returns the key of a row within its group: its key columns, separated by colons. */
  const keyOf = (row: Row): string =>
    first === undefined
      ? ""
      : others.reduce((key, name) => `${key}:${String(values(row)[name])}`, String(values(row)[first]));
  const groupName = (row: Row): string => values(row)[shape.group] as string;
  let insertCount = 0;

  /** Returns a group, and starts with no buffered rows if it is new. */
  function groupOf(name: string): Group<Row> {
    const existing = groups.get(name);
    if (existing !== undefined) {
      return existing;
    }
    const group = {
      buffered: new Map(),
      changed: new Set<string>(),
      isComplete: false,
      isCleared: false,
      resetBy: undefined,
    };
    groups.set(name, group);
    return group;
  }

  /** Resets a group to the known state of no rows. */
  function reset(name: string, isCleared: boolean): void {
    const before = groups.get(name);
    groups.set(name, { buffered: new Map(), changed: new Set(), isComplete: true, isCleared, resetBy: current() });
    onRollback(() => (before === undefined ? groups.delete(name) : groups.set(name, before)));
  }

  /** Buffers a row from the database, unless the key is buffered already. */
  function buffer(group: Group<Row>, key: string, row: Row | undefined): BufferedRow<Row> {
    const existing = group.buffered.get(key);
    if (existing !== undefined) {
      return existing;
    }
    const buffered: BufferedRow<Row> = {
      row,
      inDatabase: row === undefined ? "none" : "this",
      order: 0,
      isVerified: false,
    };
    group.buffered.set(key, buffered);
    return buffered;
  }

  /** Returns a row that matches its checksum. Checks each row once, and throws if it does not match. */
  function verified(buffered: BufferedRow<Row> | undefined): Row | undefined {
    if (buffered?.row !== undefined && !buffered.isVerified) {
      shape.check(buffered.row);
      buffered.isVerified = true;
    }
    return buffered?.row;
  }

  /** Changes the state of a key from `before` to `after`. */
  function change(
    name: string,
    group: Group<Row>,
    key: string,
    before: BufferedRow<Row> | undefined,
    after: BufferedRow<Row>,
  ): void {
    const { buffered, changed, resetBy } = group;
    buffered.set(key, after);
    changed.add(key);
    changedGroups.add(name);
    if (resetBy !== undefined && resetBy === current()) {
      return;
    }
    const { isComplete } = group;
    onRollback(() => {
      if (before === undefined) {
        buffered.delete(key);
        // The database may have a row under this key, so the group is incomplete again, even if it was read since.
        group.isComplete = isComplete;
      } else {
        buffered.set(key, before);
      }
    });
  }

  /** Counts the removed keys: at most as many rows of the database must be skipped in a search. */
  const countRemoved = ({ buffered, changed }: Group<Row>): number =>
    [...changed].filter((key) => buffered.get(key)?.row === undefined).length;

  const startsWith = (row: Row, prefix: readonly number[]): boolean =>
    prefix.every((part, i) => values(row)[shape.within[i]!] === part);

  const table: BufferedTable<Row> = {
    async prefetch(names) {
      const incomplete = [...new Set(names)].filter((name) => groups.get(name)?.isComplete !== true);
      if (incomplete.length === 0) {
        return;
      }
      const rows = await queries.ofGroups(incomplete);
      rows.forEach((row) => buffer(groupOf(groupName(row)), keyOf(row), row));
      incomplete.forEach((name) => (groupOf(name).isComplete = true));
    },

    markEmpty: (name) => reset(name, false),

    async get(name, ...within) {
      const group = groupOf(name);
      const key = within.join(":");
      const buffered = group.buffered.get(key);
      if (buffered !== undefined || group.isComplete) {
        return verified(buffered);
      }
      return verified(buffer(group, key, await queries.one(name, within)));
    },

    peek: (name, ...within) => groups.get(name)?.buffered.get(within.join(":"))?.row,

    async find(name, column, text) {
      const group = groupOf(name);
      for (const buffered of group.buffered.values()) {
        if (buffered.row !== undefined && values(buffered.row)[column] === text) {
          return verified(buffered);
        }
      }
      const row = group.isComplete ? undefined : await queries.byColumn(column, name, text);
      // If the key is buffered, the row found in the database was replaced or removed.
      return row === undefined || group.buffered.has(keyOf(row)) ? undefined : verified(buffer(group, keyOf(row), row));
    },

    async seek(name, prefix, side, beyond) {
      const group = groupOf(name);
      const column = shape.within[prefix.length]!;
      const isBeyond = (at: number): boolean => beyond === undefined || (side === "first" ? at > beyond : at < beyond);
      const candidates: number[] = [];
      for (const { row } of group.buffered.values()) {
        const at = row !== undefined && startsWith(row, prefix) ? (values(row)[column] as number) : undefined;
        if (at !== undefined && isBeyond(at)) {
          candidates.push(at);
        }
      }
      if (!group.isComplete) {
        const stored = await queries.seek({ name, prefix, side, beyond, limit: 1 + countRemoved(group) });
        const exists = (at: number): boolean => {
          const buffered = group.buffered.get([...prefix, at].join(":"));
          return buffered === undefined || buffered.row !== undefined;
        };
        candidates.push(...stored.filter(exists));
      }
      const outer = side === "first" ? Math.min : Math.max;
      return candidates.length === 0 ? undefined : candidates.reduce((a, b) => outer(a, b));
    },

    async list(name, prefix = [], columns) {
      const group = groupOf(name);
      const rows = new Map<string, Row>();
      if (!group.isComplete) {
        (await queries.list(name, prefix, columns)).forEach((row) => rows.set(keyOf(row), row));
      }
      for (const [key, buffered] of group.buffered) {
        if (buffered.row === undefined || startsWith(buffered.row, prefix)) {
          rows.delete(key);
        }
      }
      if (columns === undefined) {
        rows.forEach(shape.check);
      }
      const buffered = [...group.buffered.values()].filter(({ row }) => row !== undefined && startsWith(row, prefix));
      return [...rows.values(), ...buffered.map((entry) => verified(entry)!)].sort((a, b) =>
        compareKeys(shape.within, values(a), values(b)),
      );
    },

    insert(row) {
      const [name, key] = [groupName(row), keyOf(row)];
      const group = groupOf(name);
      const before = group.buffered.get(key);
      if (before?.row !== undefined) {
        throw new Error(`A row of ${shape.name} was created twice.`);
      }
      const inDatabase = before === undefined || before.inDatabase === "none" ? "none" : "another";
      change(name, group, key, before, { row, inDatabase, order: ++insertCount, isVerified: true });
    },

    put(row) {
      const [name, key] = [groupName(row), keyOf(row)];
      const group = groupOf(name);
      const before = group.buffered.get(key);
      const { inDatabase, order } = before ?? { inDatabase: "this", order: 0 };
      const after = inDatabase === "this" ? "older" : inDatabase;
      change(name, group, key, before, { row, inDatabase: after, order, isVerified: true });
    },

    remove(name, ...within) {
      const key = within.join(":");
      const group = groupOf(name);
      const before = group.buffered.get(key);
      const inDatabase = before?.inDatabase === "none" ? "none" : "older";
      change(name, group, key, before, { row: undefined, inDatabase, order: 0, isVerified: true });
    },

    async clear(name) {
      const group = groupOf(name);
      const buffered = [...group.buffered.values()];
      const inDatabase = group.isComplete
        ? buffered.filter((entry) => entry.inDatabase !== "none").length
        : await queries.count(name);
      const created = buffered.filter(({ row, inDatabase: has }) => row !== undefined && has === "none").length;
      const removed = buffered.filter(({ row, inDatabase: has }) => row === undefined && has !== "none").length;
      reset(name, group.isCleared || inDatabase > 0);
      changedGroups.add(name);
      return inDatabase + created - removed;
    },
  };

  return {
    table,
    /** Returns true if changes should be stored before the next transaction. */
    isFull: () =>
      [...changedGroups].some((name) => {
        const { buffered, changed, isComplete } = groupOf(name);
        return buffered.size > maxBuffered || (!isComplete && changed.size > maxChanged);
      }),
    async store(): Promise<void> {
      await queries.store(await runYielding(collectChanges(changedGroups, groupOf)));
      for (const name of changedGroups) {
        const { buffered, isComplete } = groupOf(name);
        if (buffered.size > maxBuffered) {
          groups.delete(name);
          continue;
        }
        buffered.forEach(({ row, isVerified }, key) =>
          buffered.set(key, { row, inDatabase: row === undefined ? "none" : "this", order: 0, isVerified }),
        );
        groups.set(name, { buffered, changed: new Set(), isComplete, isCleared: false, resetBy: undefined });
      }
      changedGroups.clear();
    },
  };
}

/** Collects the changes of groups. Pauses after every {@link portionRows} rows. */
function* collectChanges<Row>(
  names: Iterable<string>,
  groupOf: (name: string) => Group<Row>,
): Generator<void, TableChanges<Row>> {
  let examined = 0;
  const cleared: string[] = [];
  const removed: (readonly [string, string])[] = [];
  const inserted: BufferedRow<Row>[] = [];
  const updated: Row[] = [];
  for (const name of names) {
    const { buffered, changed, isCleared } = groupOf(name);
    if (isCleared) {
      cleared.push(name);
    }
    for (const key of changed) {
      if (++examined % portionRows === 0) {
        yield;
      }
      const entry = buffered.get(key);
      if (entry === undefined) {
        continue;
      }
      const { row, inDatabase } = entry;
      if (inDatabase === "another" || (inDatabase === "older" && row === undefined)) {
        removed.push([name, key]);
      }
      if (row !== undefined && (inDatabase === "none" || inDatabase === "another")) {
        inserted.push(entry);
      } else if (row !== undefined && inDatabase === "older") {
        updated.push(row);
      }
    }
  }
  inserted.sort((a, b) => a.order - b.order);
  return { cleared, removed, inserted: inserted.map(({ row }) => row!), updated };
}

/** Compares two rows of a group by their key columns. */
function compareKeys(
  within: readonly string[],
  a: Readonly<Record<string, BulkValue>>,
  b: Readonly<Record<string, BulkValue>>,
): number {
  for (const name of within) {
    const [valueOfA, valueOfB] = [a[name]!, b[name]!];
    if (valueOfA !== valueOfB) {
      return valueOfA < valueOfB ? -1 : 1;
    }
  }
  return 0;
}
