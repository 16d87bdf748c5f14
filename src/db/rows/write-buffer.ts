/**
 * Rows as the transactions of a block see them. A row is read once, many of them at a time where it is known what will be
 * asked for; it is held and changed in memory, and taken back there with its transaction. What changed is stored
 * together: a few statements for all of a block, whatever its transactions do again and again.
 *
 * Until then nobody else may change these rows, or see them changed by a query.
 */
import { inTurns } from "../../base/async/yielding.js";
import type { BulkValue } from "./bulk-insert.js";
import type { Queries } from "../queries/database.js";
import { createTableQueries, type Side, type TableChanges, type TableShape, type WithinKey } from "./table-queries.js";

/** Rows of one table. */
export interface BufferedTable<Row> {
  /** Reads all rows of groups, at once. */
  prefetch(groups: Iterable<string>): Promise<void>;
  /** Tells that a group has no rows, which is known. */
  isNew(group: string): void;
  get(group: string, ...within: WithinKey): Promise<Row | undefined>;
  /** What is held of a row, which nobody has checked yet. */
  peek(group: string, ...within: WithinKey): Row | undefined;
  /** The row of a group with this text in another column, of which there is at most one. */
  find(group: string, column: keyof Row & string, text: string): Promise<Row | undefined>;
  /**
   * Of the rows of a group whose keys begin with `prefix`: the next part of the key, a number, of the first one or the
   * last one; above or below `beyond`, where that is given.
   */
  edge(group: string, prefix: readonly number[], side: Side, beyond?: number): Promise<number | undefined>;
  /** Rows of a group whose keys begin with `prefix`, in their order, with at least these columns; all when left out. */
  list(group: string, prefix?: readonly number[], columns?: readonly (keyof Row & string)[]): Promise<Row[]>;
  /** A row that is not there yet. */
  insert(row: Row): void;
  /** Another state of a row that is there. */
  put(row: Row): void;
  /** Takes a row out that is there. */
  remove(group: string, ...within: WithinKey): void;
  /** Takes all rows of a group out, and gives how many there were. */
  clear(group: string): Promise<number>;
}

/** The staged rows of one transaction of the database. */
export interface WriteBuffer {
  readonly db: Queries;
  /** Begins to stage a table. Tables are stored in this order: one after those that its rows refer to. */
  table<Row extends object>(shape: TableShape<Row>): BufferedTable<Row>;
  /** Runs work that changes rows; when it throws, they are as before. One attempt ends before the next one begins. */
  savepoint<T>(work: () => Promise<T>): Promise<T>;
  /** What is to be done when the attempt that is under way is taken back; nothing outside of one. */
  readonly onRollback: (undo: () => void) => void;
  /** Stores what changed. */
  store(): Promise<void>;
}

/** What the database has where a row is held: no row, this one, an older state of it, or one that was taken out since. */
type InDatabase = "none" | "this" | "older" | "another";

interface Held<Row> {
  readonly row: Row | undefined;
  readonly inDatabase: InDatabase;
  /** New rows are stored in the order in which they were made. */
  readonly order: number;
  /** It was checked, or made here. */
  isTrusted: boolean;
}

interface Group<Row> {
  readonly held: Map<string, Held<Row>>;
  /** Keys of held rows that may have changed. */
  readonly changed: Set<string>;
  /** What is not held is not there. */
  isWhole: boolean;
  /** The rows that the database has are taken out. */
  readonly isCleared: boolean;
  /** The attempt that began it anew: with that, all of it is taken back at once. */
  readonly begunBy: object | undefined;
}

/** Rows of a group that are held from one transaction to the next; those of larger ones are stored, and read again. */
const mostHeld = 1_000;
/** Changed rows of a group that is not whole: what is taken out is read past by who looks for a neighbour. */
const mostChanged = 64;
/** Rows that are looked through before others have their turn. */
const collectedAtOnce = 5_000;

/** Begins to stage rows over a transaction of the database, or over reads alone where nothing is changed. */
export function createWriteBuffer(db: Queries): WriteBuffer {
  const tables: { store(): Promise<void>; isFull(): boolean }[] = [];
  let undo: (() => void)[] | undefined;
  const onTakenBack = (step: () => void): void => void undo?.push(step);
  const attempts: Attempts = { onRollback: onTakenBack, current: () => undo };

  async function store(): Promise<void> {
    for (const table of tables) {
      await table.store();
    }
  }

  return {
    db,
    onRollback: onTakenBack,
    store,
    table(shape) {
      const { table, ...stored } = createStagedTable(db, shape, attempts);
      tables.push(stored);
      return table;
    },
    async savepoint(work) {
      if (undo !== undefined) {
        throw new Error("Another attempt is under way.");
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

/** What tables know of attempts. */
interface Attempts extends Pick<WriteBuffer, "onRollback"> {
  /** The one that is under way. */
  readonly current: () => object | undefined;
}

function createStagedTable<Row extends object>(
  db: Queries,
  shape: TableShape<Row>,
  { onRollback: onTakenBack, current }: Attempts,
) {
  const groups = new Map<string, Group<Row>>();
  /** Names of groups that may have changed. */
  const changedGroups = new Set<string>();
  const queries = createTableQueries(db, shape);
  const values = (row: Row) => row as Readonly<Record<string, BulkValue>>;
  const [first, ...others] = shape.within;
  const keyOf = (row: Row): string =>
    first === undefined
      ? ""
      : others.reduce((key, name) => `${key}:${String(values(row)[name])}`, String(values(row)[first]));
  const groupName = (row: Row): string => values(row)[shape.group] as string;
  let made = 0;

  function groupOf(name: string): Group<Row> {
    const known = groups.get(name);
    if (known !== undefined) {
      return known;
    }
    const group = { held: new Map(), changed: new Set<string>(), isWhole: false, isCleared: false, begunBy: undefined };
    groups.set(name, group);
    return group;
  }

  /** Begins a group anew, all of whose rows are known: there are none. */
  function begin(name: string, isCleared: boolean): void {
    const before = groups.get(name);
    groups.set(name, { held: new Map(), changed: new Set(), isWhole: true, isCleared, begunBy: current() });
    onTakenBack(() => (before === undefined ? groups.delete(name) : groups.set(name, before)));
  }

  /** Holds a row of the database, unless its place is taken by what was done since. */
  function hold(group: Group<Row>, key: string, row: Row | undefined): Held<Row> {
    const known = group.held.get(key);
    if (known !== undefined) {
      return known;
    }
    const held: Held<Row> = { row, inDatabase: row === undefined ? "none" : "this", order: 0, isTrusted: false };
    group.held.set(key, held);
    return held;
  }

  /** Gives a row that is what was stored. */
  function trust(held: Held<Row> | undefined): Row | undefined {
    if (held?.row !== undefined && !held.isTrusted) {
      shape.check(held.row);
      held.isTrusted = true;
    }
    return held?.row;
  }

  /** Gives a key another state; `before` is the one that it has. */
  function change(name: string, group: Group<Row>, key: string, before: Held<Row> | undefined, after: Held<Row>): void {
    const { held, changed, begunBy } = group;
    held.set(key, after);
    changed.add(key);
    changedGroups.add(name);
    if (begunBy !== undefined && begunBy === current()) {
      return;
    }
    const { isWhole } = group;
    onTakenBack(() => {
      if (before === undefined) {
        held.delete(key);
        // What the database has there is not known, also where all of the group was read since.
        group.isWhole = isWhole;
      } else {
        held.set(key, before);
      }
    });
  }

  /** Rows that the database has, and that are taken out since. */
  const hidden = ({ held, changed }: Group<Row>): number =>
    [...changed].filter((key) => held.get(key)?.row === undefined).length;

  const startsWith = (row: Row, prefix: readonly number[]): boolean =>
    prefix.every((part, i) => values(row)[shape.within[i]!] === part);

  const table: BufferedTable<Row> = {
    async prefetch(names) {
      const wanted = [...new Set(names)].filter((name) => groups.get(name)?.isWhole !== true);
      if (wanted.length === 0) {
        return;
      }
      const rows = await queries.ofGroups(wanted);
      rows.forEach((row) => hold(groupOf(groupName(row)), keyOf(row), row));
      wanted.forEach((name) => (groupOf(name).isWhole = true));
    },

    isNew: (name) => begin(name, false),

    async get(name, ...within) {
      const group = groupOf(name);
      const key = within.join(":");
      const known = group.held.get(key);
      if (known !== undefined || group.isWhole) {
        return trust(known);
      }
      return trust(hold(group, key, await queries.one(name, within)));
    },

    peek: (name, ...within) => groups.get(name)?.held.get(within.join(":"))?.row,

    async find(name, column, text) {
      const group = groupOf(name);
      for (const held of group.held.values()) {
        if (held.row !== undefined && values(held.row)[column] === text) {
          return trust(held);
        }
      }
      const row = group.isWhole ? undefined : await queries.by(column, name, text);
      // Where another row is held, or none, the one that was found is taken out.
      return row === undefined || group.held.has(keyOf(row)) ? undefined : trust(hold(group, keyOf(row), row));
    },

    async edge(name, prefix, side, beyond) {
      const group = groupOf(name);
      const column = shape.within[prefix.length]!;
      const isBeyond = (at: number): boolean => beyond === undefined || (side === "first" ? at > beyond : at < beyond);
      const candidates: number[] = [];
      for (const { row } of group.held.values()) {
        const at = row !== undefined && startsWith(row, prefix) ? (values(row)[column] as number) : undefined;
        if (at !== undefined && isBeyond(at)) {
          candidates.push(at);
        }
      }
      if (!group.isWhole) {
        const stored = await queries.edge({ name, prefix, side, beyond, limit: 1 + hidden(group) });
        const isThere = (at: number): boolean => {
          const known = group.held.get([...prefix, at].join(":"));
          return known === undefined || known.row !== undefined;
        };
        candidates.push(...stored.filter(isThere));
      }
      const better = side === "first" ? Math.min : Math.max;
      return candidates.length === 0 ? undefined : candidates.reduce((a, b) => better(a, b));
    },

    async list(name, prefix = [], columns) {
      const group = groupOf(name);
      const rows = new Map<string, Row>();
      if (!group.isWhole) {
        (await queries.list(name, prefix, columns)).forEach((row) => rows.set(keyOf(row), row));
      }
      for (const [key, held] of group.held) {
        if (held.row === undefined || startsWith(held.row, prefix)) {
          rows.delete(key);
        }
      }
      if (columns === undefined) {
        rows.forEach(shape.check);
      }
      const held = [...group.held.values()].filter(({ row }) => row !== undefined && startsWith(row, prefix));
      return [...rows.values(), ...held.map((each) => trust(each)!)].sort((a, b) =>
        compareKeys(shape.within, values(a), values(b)),
      );
    },

    insert(row) {
      const [name, key] = [groupName(row), keyOf(row)];
      const group = groupOf(name);
      const before = group.held.get(key);
      if (before?.row !== undefined) {
        throw new Error(`A row of ${shape.name} was to be made twice.`);
      }
      const inDatabase = before === undefined || before.inDatabase === "none" ? "none" : "another";
      change(name, group, key, before, { row, inDatabase, order: ++made, isTrusted: true });
    },

    put(row) {
      const [name, key] = [groupName(row), keyOf(row)];
      const group = groupOf(name);
      const before = group.held.get(key);
      const { inDatabase, order } = before ?? { inDatabase: "this", order: 0 };
      const after = inDatabase === "this" ? "older" : inDatabase;
      change(name, group, key, before, { row, inDatabase: after, order, isTrusted: true });
    },

    remove(name, ...within) {
      const key = within.join(":");
      const group = groupOf(name);
      const before = group.held.get(key);
      const inDatabase = before?.inDatabase === "none" ? "none" : "older";
      change(name, group, key, before, { row: undefined, inDatabase, order: 0, isTrusted: true });
    },

    async clear(name) {
      const group = groupOf(name);
      const held = [...group.held.values()];
      const inDatabase = group.isWhole
        ? held.filter((each) => each.inDatabase !== "none").length
        : await queries.count(name);
      const made = held.filter(({ row, inDatabase: has }) => row !== undefined && has === "none").length;
      const gone = held.filter(({ row, inDatabase: has }) => row === undefined && has !== "none").length;
      begin(name, group.isCleared || inDatabase > 0);
      changedGroups.add(name);
      return inDatabase + made - gone;
    },
  };

  return {
    table,
    /** Whether what is held should be stored before the next transaction. */
    isFull: () =>
      [...changedGroups].some((name) => {
        const { held, changed, isWhole } = groupOf(name);
        return held.size > mostHeld || (!isWhole && changed.size > mostChanged);
      }),
    async store(): Promise<void> {
      await queries.store(await inTurns(collectChanges(changedGroups, groupOf)));
      for (const name of changedGroups) {
        const { held, isWhole } = groupOf(name);
        if (held.size > mostHeld) {
          groups.delete(name);
          continue;
        }
        held.forEach(({ row, isTrusted }, key) =>
          held.set(key, { row, inDatabase: row === undefined ? "none" : "this", order: 0, isTrusted }),
        );
        groups.set(name, { held, changed: new Set(), isWhole, isCleared: false, begunBy: undefined });
      }
      changedGroups.clear();
    },
  };
}

/** Collects what changed. It stops now and then. */
function* collectChanges<Row>(
  names: Iterable<string>,
  groupOf: (name: string) => Group<Row>,
): Generator<void, TableChanges<Row>> {
  let looked = 0;
  const cleared: string[] = [];
  const removed: (readonly [string, string])[] = [];
  const inserted: Held<Row>[] = [];
  const updated: Row[] = [];
  for (const name of names) {
    const { held, changed, isCleared } = groupOf(name);
    if (isCleared) {
      cleared.push(name);
    }
    for (const key of changed) {
      if (++looked % collectedAtOnce === 0) {
        yield;
      }
      const known = held.get(key);
      if (known === undefined) {
        continue;
      }
      const { row, inDatabase } = known;
      if (inDatabase === "another" || (inDatabase === "older" && row === undefined)) {
        removed.push([name, key]);
      }
      if (row !== undefined && (inDatabase === "none" || inDatabase === "another")) {
        inserted.push(known);
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
    const [one, other] = [a[name]!, b[name]!];
    if (one !== other) {
      return one < other ? -1 : 1;
    }
  }
  return 0;
}
