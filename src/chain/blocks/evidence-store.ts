/** Database store of fork evidence. */
import type { Database } from "../../db/queries/database.js";
import type { Evidence, EvidenceStore } from "./evidence.js";

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

export function createEvidenceStore({ read, transaction }: Pick<Database, "read" | "transaction">): EvidenceStore {
  return {
    async load() {
      const rows = await read.rows<EvidenceRow>((sql) =>
        sql("fork_evidence").orderBy(["identity", "block_number"]).select("*"),
      );
      return rows.map(fromRow);
    },
    async save(evidence) {
      await transaction((db) =>
        db.runAll((sql) =>
          evidence.map((one) =>
            sql("fork_evidence").insert(toRow(one)).onConflict(["identity", "block_number"]).merge(["settled"]),
          ),
        ),
      );
    },
  };
}

function fromRow(row: EvidenceRow): Evidence {
  return {
    identity: row.identity,
    number: BigInt(row.block_number),
    headers: [
      { header: row.header, signature: row.signature },
      { header: row.other_header, signature: row.other_signature },
    ],
    seenMs: row.seen_ms,
    isResolved: Boolean(row.settled),
  };
}

function toRow({ identity, number, headers: [one, other], seenMs, isResolved }: Evidence): EvidenceRow {
  return {
    identity,
    block_number: Number(number),
    header: Buffer.from(one.header),
    signature: Buffer.from(one.signature),
    other_header: Buffer.from(other.header),
    other_signature: Buffer.from(other.signature),
    seen_ms: seenMs,
    settled: isResolved,
  };
}
