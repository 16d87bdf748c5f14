/** Writer lease: a database row that names the one node that may write. */
import type { DatabasePart, Queries } from "../../db/queries/database.js";

/** Milliseconds until a lease expires that is not renewed. */
export const leaseMs = 10_000;

/** Interval in milliseconds at which a holder renews its lease, and sends a statement in a long transaction. */
export const renewEveryMs = leaseMs / 3;

/** Time of expiry of a lease that its holder has released, or that no node has ever held. */
export const released = 0;

/** Lease as held by this node. */
export interface HeldLease {
  /** Random ID of the holder, new for each time that a node acquires the lease. */
  readonly holder: string;
  /** Fencing epoch; increases each time that a node acquires the lease. */
  readonly epoch: number;
}

/** Process that holds the lease. */
export interface HolderProcess {
  /** Host name, for messages. */
  readonly host: string;
  /** Name of the PID namespace in which `pid` is valid. */
  readonly machine: string;
  readonly pid: number;
}

/** Lease as stored in the database. */
export interface StoredLease {
  /** Undefined if no node has ever held the lease. */
  readonly holder: (HolderProcess & { readonly holder: string; readonly sinceMs: number }) | undefined;
  readonly epoch: number;
  /** Time of expiry by the database clock, in milliseconds since the epoch. */
  readonly untilMs: number;
  /** Remaining milliseconds by the database clock; 0 or less if the lease has expired. */
  readonly leftMs: number;
  /** Public key of the node that owns the database; undefined if no node owns it. */
  readonly identity: string | undefined;
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

export type WriterLeaseStore = ReturnType<typeof createWriterLeaseStore>;

export function createWriterLeaseStore({
  read,
  write,
  transaction,
}: Pick<DatabasePart, "read" | "write" | "transaction">) {
  return {
    /** Returns true if the database has a lease, that is, if a version with leases prepared it. */
    async exists(): Promise<boolean> {
      // Knex declares `hasTable` as a promise, but it is a query builder like the others.
      return (await read.run((sql) => sql.schema.hasTable(table) as never)) === true;
    },

    /** Reads the lease over the connection for writes, because a standby server may show an earlier one. */
    read: () => readLease(write),

    /**
     * Acquires the lease, if it is unchanged since it was read and no transaction holds its row. Returns the new epoch;
     * undefined if the lease could not be acquired.
     */
    acquire: (
      expected: Pick<StoredLease, "epoch" | "untilMs">,
      by: HolderProcess & { readonly holder: string; readonly identity: string },
    ): Promise<number | undefined> =>
      transaction(async (db) => {
        const { skipLocked, nowMs } = db.dialect;
        await prepareWrite(db);
        const unchanged = await db.rows((sql) =>
          sql.raw(`SELECT epoch FROM ${table} WHERE epoch = ? AND until_ms = ?${skipLocked}`, [
            expected.epoch,
            expected.untilMs,
          ]),
        );
        if (unchanged.length === 0) {
          return undefined;
        }
        const { holder, host, machine, pid, identity } = by;
        const epoch = expected.epoch + 1;
        await db.run((sql) =>
          sql(table).update({
            ...{ holder, host, machine, pid, epoch, identity },
            ...{ since_ms: sql.raw(nowMs), until_ms: sql.raw(`${nowMs} + ${leaseMs}`) },
          }),
        );
        return epoch;
      }),

    /** Ends the lease, so that another node can acquire it immediately. Does nothing if another node has acquired it. */
    async release({ holder, epoch }: HeldLease): Promise<void> {
      await write.run((sql) => sql(table).where({ holder, epoch }).update({ until_ms: released }));
    },
  };
}

/** Reads the lease. Also works on a database that is open read-only. */
export async function readLease(read: Queries): Promise<StoredLease> {
  const row = await read.first<Row>((sql) =>
    sql(table).select("*", sql.raw(`until_ms - ${read.dialect.nowMs} AS left_ms`)),
  );
  const { holder, host, machine, pid, since_ms, epoch, until_ms, left_ms, identity } = row!;
  return {
    holder: holder === null ? undefined : { holder, host, machine, pid, sinceMs: since_ms },
    ...{ epoch, untilMs: until_ms, leftMs: left_ms, identity: identity ?? undefined },
  };
}

/** Returns the current epoch of the lease. */
export async function readEpoch(db: Queries): Promise<number> {
  return (await db.first<{ epoch: number }>((sql) => sql(table).select("epoch")))!.epoch;
}

/**
 * Makes the commit of this transaction wait for the disk, and makes the database server end the transaction if the
 * process hangs in the middle of it. Each call restarts that time limit.
 */
export async function prepareWrite(db: Queries): Promise<void> {
  const { prepareWrite: statement } = db.dialect;
  if (statement !== undefined) {
    await db.run((sql) => sql.raw(statement));
  }
}

/**
 * Renews the lease inside a transaction, and prevents other nodes from acquiring it until the transaction ends. Returns
 * true if this node holds the lease.
 */
export async function renewLease(db: Queries, { holder, epoch }: HeldLease): Promise<boolean> {
  await prepareWrite(db);
  const untilMs = `${db.dialect.nowMs} + ${leaseMs}`;
  const renewedRows = await db.run((sql) =>
    sql(table)
      .where({ holder, epoch })
      .update({ until_ms: sql.raw(untilMs) }),
  );
  return renewedRows === 1;
}

/**
 * Prevents other nodes from acquiring the lease until a transaction of the mempool ends. Can run concurrently with the
 * transaction of a block. Returns true if this node holds the lease.
 */
export async function lockLease(db: Queries, { holder, epoch }: HeldLease): Promise<boolean> {
  await prepareWrite(db);
  return (await db.first((sql) => sql(table).where({ holder, epoch }).forKeyShare().select("epoch"))) !== undefined;
}
