/**
 * Detection of forks: the headers that authorities have signed, and evidence of two different blocks with one number
 * and one signer.
 */
import { sha256 } from "../../base/crypto/hash.js";
import { createEvidenceTracker, type Evidence } from "../../chain/blocks/evidence.js";
import { createEvidenceStore } from "../../chain/blocks/evidence-store.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createSignedHeaders, type SignedHeader, type SignedHeaders } from "../../chain/blocks/signed-headers.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { decodeHeader } from "../../chain/transactions/transaction.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Dependencies of the fork detection besides the core. */
export interface ForksDeps {
  readonly database: Database;
  readonly store: Pick<ChainStore, "header">;
  readonly genesis: Genesis | undefined;
  readonly key: { readonly publicKey: string };
  readonly chainHealth: SharedSubsystem;
}

/** Fork detection of a node. */
export interface Forks {
  readonly headers: SignedHeaders;
  /** Returns the evidence that is not resolved. */
  readonly evidence: () => readonly Evidence[];
  /**
   * Returns the reason why this node produces no blocks and accepts no transactions: its own key has signed two blocks
   * with one number. Undefined if it has not.
   */
  readonly whyStopped: () => string | undefined;
  /** Stores new evidence, on a node that writes. */
  readonly save: () => Promise<void>;
}

/** Starts the fork detection with the stored evidence. `--recover` marks that evidence as resolved. */
export async function watchForks(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "subsystems">,
  deps: ForksDeps,
): Promise<Forks> {
  const { config, log } = core;
  const { database, store, genesis, key, chainHealth } = deps;
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

  const save = (): Promise<void> =>
    config.role === "writer" ? book.store((evidence) => evidenceStore.save(evidence)) : Promise.resolve();
  const ownFork = (): Evidence | undefined => book.unresolved().find(({ identity }) => identity === key.publicKey);
  const whyStopped = (): string | undefined => {
    const fork = ownFork();
    return (
      fork && `${describeFork(fork)} That is this node's own key, so it produces no blocks and accepts no transactions.`
    );
  };

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
      storedHeader: async (number) => toSigned(await store.header(number)),
      onFork: (one, other) => book.add(one, other),
      onError: (error) => log.warn({ subsystem: "chain", err: error }, "A header could not be compared"),
    }),
    evidence: () => book.unresolved(),
    whyStopped,
    save,
  };
}

function toSigned(stored: Awaited<ReturnType<ChainStore["header"]>>): SignedHeader | undefined {
  if (stored === undefined) {
    return undefined;
  }
  const { number, proposer } = decodeHeader(stored.header);
  return { ...stored, number, proposer };
}

function describeFork({ identity, number, headers: [one, other] }: Evidence): string {
  const [first, second] = [sha256(one.header), sha256(other.header)];
  return `The chain is forked: the key ${identity} has signed two blocks with the number ${number}, ${first} and ${second}.`;
}
