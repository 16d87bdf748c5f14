/** The watch over forks: what authorities have signed, and evidence of two blocks of one number by one of them. */
import { sha256 } from "../../base/crypto/hash.js";
import { createEvidenceBook, type Evidence } from "../../chain/blocks/evidence.js";
import { createEvidenceStore } from "../../chain/blocks/evidence-store.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import { createSignedHeaders, type SignedHeader, type SignedHeaders } from "../../chain/blocks/signed-headers.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { describeHeader } from "../../chain/transactions/transaction.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/shared-subsystem.js";
import type { NodeCore } from "../lifecycle/core.js";

/** What it needs beside the core. */
export interface ForksDeps {
  readonly database: Database;
  readonly store: Pick<ChainStore, "header">;
  readonly genesis: Genesis | undefined;
  readonly key: { readonly publicKey: string };
  readonly chainHealth: SharedSubsystem;
}

/** The watch. */
export interface Forks {
  readonly headers: SignedHeaders;
  /** Evidence that nobody has dealt with. */
  readonly evidence: () => readonly Evidence[];
  /** Why this node makes no block and takes no transaction: its own key has signed two blocks of one number. */
  readonly whyStopped: () => string | undefined;
  /** Stores what was found. */
  readonly save: () => Promise<void>;
}

/** Begins it, with what was found before this process began; the operator's word settles that. */
export async function watchForks({ config, log }: NodeCore, deps: ForksDeps): Promise<Forks> {
  const { database, store, genesis, key, chainHealth } = deps;
  const evidenceStore = createEvidenceStore(database);
  const book = createEvidenceBook({
    stored: await evidenceStore.load(),
    nowMs: Date.now,
    onFound(evidence) {
      log.error({ subsystem: "chain" }, describeFork(evidence));
      show();
      void save().catch((error: unknown) =>
        log.warn({ subsystem: "chain", err: error }, "Evidence of a fork could not be stored; it is tried again"),
      );
    },
  });

  const save = (): Promise<void> =>
    config.role === "writer" ? book.store((evidence) => evidenceStore.save(evidence)) : Promise.resolve();
  const ownFork = (): Evidence | undefined => book.open().find(({ identity }) => identity === key.publicKey);
  const whyStopped = (): string | undefined => {
    const fork = ownFork();
    return fork && `${describeFork(fork)} That is this node's own key: it makes no block and takes no transaction.`;
  };

  function show(): void {
    const [first] = book.open();
    chainHealth.tell("evidence", whyStopped() ?? (first && describeFork(first)));
  }

  if (config.recover && book.open().length > 0) {
    log.warn({ subsystem: "chain" }, "Evidence of forks is taken as dealt with, by the operator's word");
    book.settle();
    await save();
  }
  show();

  return {
    headers: createSignedHeaders({
      authorities: genesis?.authorities ?? [],
      storedHeader: async (number) => toSigned(await store.header(number)),
      onFork: (one, other) => book.add(one, other),
      onError: (error) => log.warn({ subsystem: "chain", err: error }, "A header could not be compared"),
    }),
    evidence: () => book.open(),
    whyStopped,
    save,
  };
}

function toSigned(stored: Awaited<ReturnType<ChainStore["header"]>>): SignedHeader | undefined {
  if (stored === undefined) {
    return undefined;
  }
  const { number, proposer } = describeHeader(stored.header);
  return { ...stored, number, proposer };
}

function describeFork({ identity, number, headers: [one, other] }: Evidence): string {
  const [first, second] = [sha256(one.header), sha256(other.header)];
  return `The chain is forked: the key ${identity} has signed two blocks ${number}, ${first} and ${second}.`;
}
