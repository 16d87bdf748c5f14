/**
 * Detection of forks: the headers that authorities have signed, and evidence of two different blocks with one number
 * and one signer.
 */
import { sha256 } from "../../base/crypto/hash.js";
import { createEvidenceTracker, createSignedHeaders, type Evidence } from "../../chain/blocks/evidence.js";
import { createEvidenceStore } from "../../chain/blocks/evidence-store.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { decodeHeader } from "../../chain/transactions/transaction.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";
import { readinessReasons } from "./readiness-reasons.js";

/** Dependencies of the fork detection besides the core. */
interface ForksDeps {
  readonly database: Database;
  readonly store: Pick<ChainStore, "header">;
  readonly genesis: Genesis | undefined;
  readonly key: { readonly publicKey: string };
  readonly chainHealth: SharedSubsystem;
}

export type Forks = Awaited<ReturnType<typeof watchForks>>;

/** Starts the fork detection with the stored evidence. `--recover` marks that evidence as resolved. */
export async function watchForks(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "subsystems">,
  { database, store, genesis, key, chainHealth }: ForksDeps,
) {
  const { config, log } = core;
  const evidenceStore = createEvidenceStore(database);
  const book = createEvidenceTracker({
    stored: await untilDatabaseResponds(core, () => evidenceStore.load()),
    nowMs: Date.now,
    onFound(evidence) {
      log.error({ subsystem: "chain" }, describeFork(evidence));
      report();
      void save().catch((error: unknown) =>
        log.warn({ subsystem: "chain", err: error }, "Evidence of a fork could not be stored; retrying"),
      );
    },
  });

  /** Stores new evidence, on a node that writes. */
  const save = (): Promise<void> =>
    config.role === "writer" ? book.store((evidence) => evidenceStore.save(evidence)) : Promise.resolve();

  /**
   * Returns the reason why this node produces no blocks and accepts no transactions: its own key has signed two blocks
   * with one number. Undefined if it has not.
   */
  function whyStopped(): string | undefined {
    const fork = book.unresolved().find(({ identity }) => identity === key.publicKey);
    return fork && readinessReasons.forked(describeFork(fork));
  }

  function report(): void {
    const [first] = book.unresolved();
    chainHealth.report("evidence", whyStopped() ?? (first && describeFork(first)));
  }

  if (config.recover && book.unresolved().length > 0) {
    log.warn({ subsystem: "chain" }, "Evidence of forks is marked as resolved, because of --recover");
    book.resolve();
    await untilDatabaseResponds(core, save);
  }
  report();

  return {
    headers: createSignedHeaders({
      authorities: genesis?.authorities ?? [],
      async storedHeader(number) {
        const stored = await store.header(number);
        return stored && { ...stored, number, proposer: decodeHeader(stored.header).proposer };
      },
      onFork: (one, other) => book.add(one, other),
      onError: (error) => log.warn({ subsystem: "chain", err: error }, "A header could not be compared"),
    }),
    /** Returns the evidence that is not resolved. */
    evidence: () => book.unresolved(),
    whyStopped,
    save,
  };
}

function describeFork({ identity, number, headers: [one, other] }: Evidence): string {
  const [first, second] = [sha256(one.header), sha256(other.header)];
  return `The chain is forked: the key ${identity} has signed two blocks with the number ${number}, ${first} and ${second}.`;
}
