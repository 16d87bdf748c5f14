/** Database store of fork evidence. */
import type { Database } from "../../db/queries/database.js";
import type { Evidence } from "./evidence.js";

interface EvidenceRow {
  readonly identity: string;
  readonly block_number: number;
  readonly header: Buffer;
  readonly signature: Buffer;
  readonly other_header: Buffer;
  readonly other_signature: Buffer;
  readonly seen_ms: number;
  /** True if the evidence is resolved. SQLite returns 0 or 1, PostgreSQL a boolean. */
  readonly settled: boolean | number;
}

export function createEvidenceStore({ read, transaction }: Pick<Database, "read" | "transaction">) {
  return {
    async load(): Promise<Evidence[]> {
      const rows = await read.rows<EvidenceRow>((sql) =>
        sql("fork_evidence").orderBy(["identity", "block_number"]).select("*"),
      );
      return rows.map((row) => ({
        identity: row.identity,
        number: BigInt(row.block_number),
        headers: [
          { header: row.header, signature: row.signature },
          { header: row.other_header, signature: row.other_signature },
        ],
        seenMs: row.seen_ms,
        isResolved: Boolean(row.settled),
      }));
    },

    /** Inserts evidence, or updates whether it is resolved. */
    async save(evidence: readonly Evidence[]): Promise<void> {
      const rows = evidence.map(({ identity, number, headers: [one, other], seenMs, isResolved }) => ({
        ...{ identity, block_number: Number(number), seen_ms: seenMs, settled: isResolved },
        ...{ header: Buffer.from(one.header), signature: Buffer.from(one.signature) },
        ...{ other_header: Buffer.from(other.header), other_signature: Buffer.from(other.signature) },
      }));
      await transaction((db) =>
        db.runAll((sql) =>
          rows.map((row) =>
            sql("fork_evidence").insert(row).onConflict(["identity", "block_number"]).merge(["settled"]),
          ),
        ),
      );
    },
  };
}
