/**
 * Write buffer: rows as the transactions of a block see them. A row is read once; known rows are prefetched in bulk.
 * Changes stay in memory and roll back with their transaction. They are stored together, in a few statements per block,
 * even if transactions change the same row again and again.
 *
 * Until then no other code may change these rows, and queries do not see the changes.
 */
import { runYielding } from "../../base/async/yielding.js";
import type { BulkValue } from "./bulk-changes.js";
import type { Queries } from "../queries/database.js";
import { createTableQueries, type Side, type TableChanges, type TableShape, type WithinKey } from "./table-queries.js";

export type { TableShape };

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

export type WriteBuffer = ReturnType<typeof createWriteBuffer>;

/** Creates a write buffer over a database transaction, or over a read connection if nothing will be changed. */
export function createWriteBuffer(db: Queries) {
  const tables: Pick<BufferedTable<never>, "store" | "isFull">[] = [];
  let undo: (() => void)[] | undefined;
  const onRollback = (step: () => void): void => void undo?.push(step);
  const savepoints: Savepoints = { onRollback, current: () => undo };

  /** Stores the changes in the database. */
  async function store(): Promise<void> {
    for (const table of tables) {
      await table.store();
    }
  }

  return {
    db,
    /** Registers a function that runs if the current savepoint rolls back. Does nothing outside of a savepoint. */
    onRollback,
    store,
    /**
     * Adds a table. Tables are stored in the order in which they are added, so add a table after those that it
     * references.
     */
    table<Row extends object>(shape: TableShape<Row>): BufferedTable<Row> {
      const table = new BufferedTable(db, shape, savepoints);
      tables.push(table);
      return table;
    },
    /** Runs work that changes rows, and rolls them back if the work throws. Savepoints do not nest or overlap. */
    async savepoint<T>(work: () => Promise<T>): Promise<T> {
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
interface Savepoints {
  readonly onRollback: (undo: () => void) => void;
  /** Returns the identity of the current savepoint; undefined outside of one. */
  readonly current: () => object | undefined;
}

const newGroup = { isComplete: false, isCleared: false, resetBy: undefined };

export class BufferedTable<Row extends object> {
  readonly #groups = new Map<string, Group<Row>>();
  /** Names of groups that may have changed. */
  readonly #changedGroups = new Set<string>();
  readonly #queries;
  readonly #shape;
  readonly #savepoints;
  #insertCount = 0;

  constructor(db: Queries, shape: TableShape<Row>, savepoints: Savepoints) {
    this.#queries = createTableQueries(db, shape);
    this.#shape = shape;
    this.#savepoints = savepoints;
  }

  /** Reads all rows of groups with one query. */
  async prefetch(names: Iterable<string>): Promise<void> {
    const incomplete = [...new Set(names)].filter((name) => this.#groups.get(name)?.isComplete !== true);
    if (incomplete.length === 0) {
      return;
    }
    const rows = await this.#queries.ofGroups(incomplete);
    rows.forEach((row) => this.#buffer(this.#group(this.#groupName(row)), this.#keyOf(row), row));
    incomplete.forEach((name) => (this.#group(name).isComplete = true));
  }

  /** Declares that a group is known to have no rows. */
  markEmpty(name: string): void {
    this.#reset(name, false);
  }

  async get(name: string, ...within: WithinKey): Promise<Row | undefined> {
    const group = this.#group(name);
    const key = within.join(":");
    const buffered = group.buffered.get(key);
    if (buffered !== undefined || group.isComplete) {
      return this.#verified(buffered);
    }
    return this.#verified(this.#buffer(group, key, await this.#queries.one(name, within)));
  }

  /** Returns the buffered state of a row, which may not be checked yet. */
  peek(name: string, ...within: WithinKey): Row | undefined {
    return this.#groups.get(name)?.buffered.get(within.join(":"))?.row;
  }

  /** Returns the row of a group with this text in another column. At most one row may match. */
  async find(name: string, column: keyof Row & string, text: string): Promise<Row | undefined> {
    const group = this.#group(name);
    for (const buffered of group.buffered.values()) {
      if (buffered.row !== undefined && valuesOf(buffered.row)[column] === text) {
        return this.#verified(buffered);
      }
    }
    const row = group.isComplete ? undefined : await this.#queries.byColumn(column, name, text);
    // If the key is buffered, the row found in the database was replaced or removed.
    return row === undefined || group.buffered.has(this.#keyOf(row))
      ? undefined
      : this.#verified(this.#buffer(group, this.#keyOf(row), row));
  }

  /**
   * Finds the first or last row of a group among the keys that start with `prefix`. Returns the next part of its key, a
   * number. With `beyond`, considers only parts above it (first) or below it (last).
   */
  async seek(name: string, prefix: readonly number[], side: Side, beyond?: number): Promise<number | undefined> {
    const group = this.#group(name);
    const column = this.#shape.within[prefix.length]!;
    const isBeyond = (at: number): boolean => beyond === undefined || (side === "first" ? at > beyond : at < beyond);
    const candidates: number[] = [];
    for (const { row } of group.buffered.values()) {
      const at = row !== undefined && this.#startsWith(row, prefix) ? (valuesOf(row)[column] as number) : undefined;
      if (at !== undefined && isBeyond(at)) {
        candidates.push(at);
      }
    }
    if (!group.isComplete) {
      const { buffered, changed } = group;
      // At most as many rows of the database must be skipped as were removed here.
      const removed = [...changed].filter((key) => buffered.get(key)?.row === undefined).length;
      const stored = await this.#queries.seek({ name, prefix, side, beyond, limit: 1 + removed });
      const isRemoved = (at: number): boolean => {
        const entry = buffered.get([...prefix, at].join(":"));
        return entry !== undefined && entry.row === undefined;
      };
      candidates.push(...stored.filter((at) => !isRemoved(at)));
    }
    const outer = side === "first" ? Math.min : Math.max;
    return candidates.length === 0 ? undefined : candidates.reduce((a, b) => outer(a, b));
  }

  /**
   * Returns the rows of a group whose keys start with `prefix`, in key order. With `columns`, the rows have at least
   * these columns; without, all of them.
   */
  async list(name: string, prefix: readonly number[] = [], columns?: readonly (keyof Row & string)[]): Promise<Row[]> {
    const group = this.#group(name);
    const rows = new Map<string, Row>();
    if (!group.isComplete) {
      (await this.#queries.list(name, prefix, columns)).forEach((row) => rows.set(this.#keyOf(row), row));
    }
    const buffered: BufferedRow<Row>[] = [];
    for (const [key, entry] of group.buffered) {
      rows.delete(key);
      if (entry.row !== undefined && this.#startsWith(entry.row, prefix)) {
        buffered.push(entry);
      }
    }
    if (columns === undefined) {
      rows.forEach(this.#shape.check);
    }
    return [...rows.values(), ...buffered.map((entry) => this.#verified(entry)!)].sort((a, b) =>
      compareKeys(this.#shape.within, valuesOf(a), valuesOf(b)),
    );
  }

  /** Adds a row that does not exist. */
  insert(row: Row): void {
    this.#change(this.#groupName(row), this.#keyOf(row), (before) => {
      if (before?.row !== undefined) {
        throw new Error(`A row of ${this.#shape.name} was created twice.`);
      }
      const inDatabase = before === undefined || before.inDatabase === "none" ? "none" : "another";
      return { row, inDatabase, order: ++this.#insertCount, isVerified: true };
    });
  }

  /** Replaces an existing row. */
  put(row: Row): void {
    this.#change(this.#groupName(row), this.#keyOf(row), (before) => {
      const { inDatabase, order } = before ?? { inDatabase: "this", order: 0 };
      return { row, inDatabase: inDatabase === "this" ? "older" : inDatabase, order, isVerified: true };
    });
  }

  /** Removes an existing row. */
  remove(name: string, ...within: WithinKey): void {
    this.#change(name, within.join(":"), (before) => {
      const inDatabase = before?.inDatabase === "none" ? "none" : "older";
      return { row: undefined, inDatabase, order: 0, isVerified: true };
    });
  }

  /** Removes all rows of a group and returns their number. */
  async clear(name: string): Promise<number> {
    const group = this.#group(name);
    const buffered = [...group.buffered.values()];
    const inDatabase = group.isComplete
      ? buffered.filter((entry) => entry.inDatabase !== "none").length
      : await this.#queries.count(name);
    const created = buffered.filter(({ row, inDatabase: has }) => row !== undefined && has === "none").length;
    const removed = buffered.filter(({ row, inDatabase: has }) => row === undefined && has !== "none").length;
    this.#reset(name, group.isCleared || inDatabase > 0);
    this.#changedGroups.add(name);
    return inDatabase + created - removed;
  }

  /** Returns true if changes should be stored before the next transaction. */
  isFull(): boolean {
    return [...this.#changedGroups].some((name) => {
      const { buffered, changed, isComplete } = this.#group(name);
      return buffered.size > maxBuffered || (!isComplete && changed.size > maxChanged);
    });
  }

  async store(): Promise<void> {
    const changed = Array.from(this.#changedGroups, (name) => [name, this.#group(name)] as const);
    await this.#queries.store(await runYielding(collectChanges(changed)));
    for (const [name, { buffered, isComplete }] of changed) {
      if (buffered.size > maxBuffered) {
        this.#groups.delete(name);
        continue;
      }
      buffered.forEach(({ row, isVerified }, key) =>
        buffered.set(key, { row, inDatabase: row === undefined ? "none" : "this", order: 0, isVerified }),
      );
      this.#groups.set(name, { ...newGroup, buffered, changed: new Set(), isComplete });
    }
    this.#changedGroups.clear();
  }

  /** Returns a group, and starts with no buffered rows if it is new. */
  #group(name: string): Group<Row> {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { ...newGroup, buffered: new Map(), changed: new Set() };
      this.#groups.set(name, group);
    }
    return group;
  }

  #groupName(row: Row): string {
    return valuesOf(row)[this.#shape.group] as string;
  }

  /** Returns the key of a row within its group: its key columns, separated by colons. */
  #keyOf(row: Row): string {
    const { within } = this.#shape;
    const values = valuesOf(row);
    let key = within.length === 0 ? "" : String(values[within[0]!]);
    for (let i = 1; i < within.length; i++) {
      key += `:${String(values[within[i]!])}`;
    }
    return key;
  }

  #startsWith(row: Row, prefix: readonly number[]): boolean {
    return prefix.every((part, i) => valuesOf(row)[this.#shape.within[i]!] === part);
  }

  /** Resets a group to the known state of no rows. */
  #reset(name: string, isCleared: boolean): void {
    const before = this.#groups.get(name);
    const resetBy = this.#savepoints.current();
    this.#groups.set(name, { buffered: new Map(), changed: new Set(), isComplete: true, isCleared, resetBy });
    this.#savepoints.onRollback(() =>
      before === undefined ? this.#groups.delete(name) : this.#groups.set(name, before),
    );
  }

  /** Buffers a row from the database, unless the key is buffered already. */
  #buffer(group: Group<Row>, key: string, row: Row | undefined): BufferedRow<Row> {
    const existing = group.buffered.get(key);
    if (existing !== undefined) {
      return existing;
    }
    const inDatabase = row === undefined ? "none" : "this";
    const buffered: BufferedRow<Row> = { row, inDatabase, order: 0, isVerified: false };
    group.buffered.set(key, buffered);
    return buffered;
  }

  /** Returns a row that matches its checksum. Checks each row once, and throws if it does not match. */
  #verified(buffered: BufferedRow<Row> | undefined): Row | undefined {
    if (buffered?.row !== undefined && !buffered.isVerified) {
      this.#shape.check(buffered.row);
      buffered.isVerified = true;
    }
    return buffered?.row;
  }

  #change(name: string, key: string, toAfter: (before: BufferedRow<Row> | undefined) => BufferedRow<Row>): void {
    const group = this.#group(name);
    const { buffered, changed, resetBy, isComplete } = group;
    const before = buffered.get(key);
    buffered.set(key, toAfter(before));
    changed.add(key);
    this.#changedGroups.add(name);
    if (resetBy !== undefined && resetBy === this.#savepoints.current()) {
      return;
    }
    this.#savepoints.onRollback(() => {
      if (before === undefined) {
        buffered.delete(key);
        // The database may have a row under this key, so the group is incomplete again, even if it was read since.
        group.isComplete = isComplete;
      } else {
        buffered.set(key, before);
      }
    });
  }
}

const valuesOf = (row: object) => row as Readonly<Record<string, BulkValue>>;

/** Collects the changes of groups. Pauses after every {@link portionRows} rows. */
function* collectChanges<Row>(
  groups: readonly (readonly [name: string, Group<Row>])[],
): Generator<void, TableChanges<Row>> {
  let examined = 0;
  const cleared: string[] = [];
  const removed: (readonly [string, string])[] = [];
  const inserted: BufferedRow<Row>[] = [];
  const updated: Row[] = [];
  for (const [name, { buffered, changed, isCleared }] of groups) {
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
