/** The lease of the one node that writes, a row in the database. */
import type { DatabasePart, Queries } from "../../db/queries/database.js";

/** How long a lease holds without being renewed. */
export const leaseMs = 10_000;

/** Who holds a lease, and by which take-over. */
export interface HeldLease {
  /** Random, another one for each node that takes the lease. */
  readonly holder: string;
  /** Grows with each node that takes it. */
  readonly epoch: number;
}

/** Where the holder runs. */
export interface HolderPlace {
  /** For messages. */
  readonly host: string;
  readonly machine: string;
  readonly pid: number;
}

/** The lease as it is in the database. */
export interface StoredLease {
  /** Undefined while nobody has ever held it. */
  readonly holder: (HolderPlace & { readonly holder: string; readonly sinceMs: number }) | undefined;
  readonly epoch: number;
  readonly untilMs: number;
  /** How long it still holds, by the clock of the database; not above 0 when it has run out. */
  readonly leftMs: number;
  /** Public key of the node whose database it is; undefined while it is nobody's. */
  readonly identity: string | undefined;
}

/** The stored lease. */
export interface WriterLeaseStore {
  /** Whether the database has one: it was prepared by a version that knows of it. */
  exists(): Promise<boolean>;
  read(): Promise<StoredLease>;
  /**
   * Takes the lease, if it is still as it was seen, and nobody writes at this moment.
   *
   * @returns its new epoch; undefined when it was not to be had.
   */
  take(
    seen: Pick<StoredLease, "epoch" | "untilMs">,
    by: HolderPlace & { readonly holder: string; readonly identity: string },
  ): Promise<number | undefined>;
  /** Lets the next one take it at once. Changes nothing when somebody else has taken it. */
  release(held: HeldLease): Promise<void>;
}

const table = "writer_lease";

interface Row {
  readonly holder: string | null;
  readonly host: string;
  readonly machine: string;
  readonly pid: number;
  readonly since_ms: number;
  readonly epoch: number;
  readonly until_ms: number;
  readonly left_ms: number;
  readonly identity: string | null;
}

export function createWriterLeaseStore({
  read,
  write,
  transaction,
}: Pick<DatabasePart, "read" | "write" | "transaction">): WriterLeaseStore {
  return {
    async exists() {
      // It says that it is a promise; it is a query like the others.
      return (await read.run((sql) => sql.schema.hasTable(table) as never)) === true;
    },

    read: () => readLease(read),

    take: (seen, { holder, host, machine, pid, identity }) =>
      transaction(async (db) => {
        const { lockFree, nowMs } = db.dialect;
        await beginBounded(db);
        const free = await db.rows((sql) =>
          sql.raw(`SELECT epoch FROM ${table} WHERE epoch = ? AND until_ms = ?${lockFree}`, [seen.epoch, seen.untilMs]),
        );
        if (free.length === 0) {
          return undefined;
        }
        const epoch = seen.epoch + 1;
        await db.run((sql) =>
          sql(table).update({
            ...{ holder, host, machine, pid, epoch, identity },
            ...{ since_ms: sql.raw(nowMs), until_ms: sql.raw(`${nowMs} + ${leaseMs}`) },
          }),
        );
        return epoch;
      }),

    async release({ holder, epoch }) {
      await write.run((sql) => sql(table).where({ holder, epoch }).update({ until_ms: 0 }));
    },
  };
}

/** The stored lease, of a database that may be open for reads alone. */
export async function readLease(read: Queries): Promise<StoredLease> {
  const row = await read.first<Row>((sql) =>
    sql(table).select("*", sql.raw(`until_ms - ${read.dialect.nowMs} AS left_ms`)),
  );
  return describe(row!);
}

function describe(row: Row): StoredLease {
  const { holder, host, machine, pid, since_ms, epoch, until_ms, left_ms, identity } = row;
  return {
    holder: holder === null ? undefined : { holder, host, machine, pid, sinceMs: since_ms },
    ...{ epoch, untilMs: until_ms, leftMs: left_ms, identity: identity ?? undefined },
  };
}

/** By which take-over somebody has the lease. */
export async function readEpoch(db: Queries): Promise<number> {
  return (await db.first<{ epoch: number }>((sql) => sql(table).select("epoch")))!.epoch;
}

/** Has a transaction end without its process, where that stops in the middle of it. */
async function beginBounded(db: Queries): Promise<void> {
  const { boundTransaction } = db.dialect;
  if (boundTransaction !== undefined) {
    await db.run((sql) => sql.raw(boundTransaction));
  }
}

/**
 * In a transaction: renews the lease, which nobody takes before the end of the transaction.
 *
 * @returns whether it is held.
 */
export async function holdLease(db: Queries, { holder, epoch }: HeldLease): Promise<boolean> {
  await beginBounded(db);
  const untilMs = `${db.dialect.nowMs} + ${leaseMs}`;
  const found = await db.run((sql) =>
    sql(table)
      .where({ holder, epoch })
      .update({ until_ms: sql.raw(untilMs) }),
  );
  return found === 1;
}

/**
 * In a transaction beside that of a block: keeps others from taking the lease before its end.
 *
 * @returns whether it is held.
 */
export async function shareLease(db: Queries, { holder, epoch }: HeldLease): Promise<boolean> {
  await beginBounded(db);
  return (await db.first((sql) => sql(table).where({ holder, epoch }).forKeyShare().select("epoch"))) !== undefined;
}
