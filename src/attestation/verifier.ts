/**
 * The verifier: the pool with its thread, started again with growing pauses when it cannot be, and a bound on what waits for
 * it. Whatever is handed in, the node itself only waits.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Worker } from "node:worker_threads";
import { RpcError } from "../rpc/errors.js";
import type { VerifiedPresentation } from "./presentation.js";
import { busy, createWorkerPool, type VerifierThread } from "./worker-pool.js";

export type VerifierState =
  | { readonly status: "starting" | "running" | "stopped" }
  | { readonly status: "failed"; readonly why: string };

export interface VerifierDeps {
  /** Keys of notaries that are trusted, `algorithm:hex` each. */
  readonly notaryKeys: readonly string[];
  readonly onState: (state: VerifierState) => void;
  /** Hears why a start failed, in words that are not for callers. */
  readonly onProblem: (error: unknown) => void;
  /** How long one verification may take. */
  readonly timeoutMs?: number;
  /** File of the library's WebAssembly; the installed one when left out. */
  readonly library?: string;
}

export interface AttestationVerifier {
  readonly state: VerifierState;
  /** Resolves when the first start has succeeded or failed. */
  readonly started: Promise<void>;
  /**
   * Verifies a presentation in bincode.
   *
   * @throws Failure INVALID_ATTESTATION, BUSY, VERIFIER_NOT_RUNNING
   */
  verify(bytes: Uint8Array): Promise<VerifiedPresentation>;
  /** For tests: the thread, which may be ended at any time. */
  readonly thread: Worker | undefined;
  stop(): Promise<void>;
}

/** Most presentations at a time: the one that is verified, and those that wait for it. */
const maxOpen = 66;
const defaultTimeoutMs = 2_000;
const installedLibrary = createRequire(import.meta.url).resolve("tlsn-wasm/tlsn_wasm_bg.wasm");
/** Pauses after starts that failed. */
const firstRetryMs = 1_000;
const lastRetryMs = 60_000;

export function startVerifier(deps: VerifierDeps): AttestationVerifier {
  const kept = keepPool(deps);
  const { started } = kept;
  let open = 0;
  return {
    get state() {
      return kept.state;
    },
    get thread() {
      return kept.pool?.thread;
    },
    started,
    async verify(bytes) {
      checkRuns(kept.state);
      if (open >= maxOpen) {
        throw busy("Too many attestations wait to be verified; try again in 5 s.");
      }
      open++;
      try {
        await started;
        checkRuns(kept.state);
        return await kept.pool!.verify(bytes);
      } catch (error) {
        checkRuns(kept.state);
        throw error;
      } finally {
        open--;
      }
    },
    stop: () => kept.stop(),
  };
}

/** The pool of a verifier, which is another one after each failure. */
interface KeptPool extends Pick<AttestationVerifier, "state" | "started" | "stop"> {
  /** There is one whenever the state is `running`. */
  readonly pool: VerifierThread | undefined;
}

function keepPool(deps: VerifierDeps): KeptPool {
  const { notaryKeys, onState, onProblem, timeoutMs = defaultTimeoutMs, library = installedLibrary } = deps;
  let state: VerifierState = { status: "starting" };
  let module: WebAssembly.Module | undefined;
  let pool: VerifierThread | undefined;
  let retryMs = firstRetryMs;
  let timer: NodeJS.Timeout | undefined;

  function move(next: VerifierState): void {
    if (state.status !== "stopped") {
      state = next;
      onState(next);
    }
  }

  async function start(): Promise<void> {
    try {
      // Compiled once; each thread makes an instance of its own of it.
      module ??= await WebAssembly.compile(await readFile(library));
      if (state.status !== "stopped") {
        pool = createWorkerPool({ module, notaryKeys, timeoutMs, onProblem, onBroken: fail });
        await pool.ready;
        retryMs = firstRetryMs;
        move({ status: "running" });
      }
    } catch (error) {
      fail(error);
    }
  }

  function fail(error: unknown): void {
    if (state.status === "stopped") {
      return;
    }
    onProblem(error);
    move({
      status: "failed",
      why: module === undefined ? "its library cannot be loaded" : "its thread cannot be started",
    });
    void pool?.stop();
    timer = setTimeout(() => {
      starting = start();
    }, retryMs);
    retryMs = Math.min(2 * retryMs, lastRetryMs);
  }

  let starting = start();
  const started = starting;
  return {
    get state() {
      return state;
    },
    get pool() {
      return pool;
    },
    started,
    async stop() {
      move({ status: "stopped" });
      clearTimeout(timer);
      await pool?.stop();
      await starting;
    },
  };
}

/** @throws Failure VERIFIER_NOT_RUNNING */
function checkRuns(state: VerifierState): void {
  if (state.status === "failed" || state.status === "stopped") {
    const why = state.status === "failed" ? state.why : "the node stops";
    throw new RpcError("VERIFIER_NOT_RUNNING", `No attestation can be verified: ${why}.`);
  }
}
