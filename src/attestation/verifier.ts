/**
 * Verifier of attestations: a pool with one thread, restarted with growing pauses after a failure, and a limit on open
 * verifications. No input can block the event loop of the node, which only waits for the thread.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { loadOptional } from "../base/async/optional-package.js";
import { StartError } from "../base/errors/start-error.js";
import { RpcError } from "../rpc/errors.js";
import type { VerifiedPresentation } from "./presentation.js";
import { busy, createWorkerPool } from "./worker-pool.js";

export type VerifierState =
  | { readonly status: "starting" | "running" | "stopped" }
  | { readonly status: "failed"; readonly why: string };

export interface VerifierDeps {
  /** Keys of trusted notaries, `algorithm:hex` each. */
  readonly notaryKeys: readonly string[];
  readonly onState: (state: VerifierState) => void;
  /** Called with the cause of a failure. The error text is not meant for callers of the API. */
  readonly onProblem: (error: unknown) => void;
  /** Time limit for one verification in milliseconds. Default: 2,000. */
  readonly timeoutMs?: number;
  /** File of the library's WebAssembly. Default: the installed library. */
  readonly library?: string;
}

export type AttestationVerifier = ReturnType<typeof startVerifier>;

/** Limit on open verifications: the one in progress, and those that wait. */
const maxPending = 66;
const defaultTimeoutMs = 2_000;
/** Finds the file of the installed library. Rejects with StartError if the package is not installed. */
const findLibrary = () =>
  loadOptional("It", "tlsn-wasm", () => createRequire(import.meta.url).resolve("tlsn-wasm/tlsn_wasm_bg.wasm"));
/** Pauses after failed starts: 1 s, doubling up to 60 s. */
const firstRetryMs = 1_000;
const maxRetryMs = 60_000;

/** Returns the reason as the end of a message, without the path of a file. */
function whyNotLoaded(error: unknown): string {
  return error instanceof StartError ? error.message.replace(/^It/, "it") : "its library cannot be loaded";
}

export function startVerifier(deps: VerifierDeps) {
  const { notaryKeys, onState, onProblem, timeoutMs = defaultTimeoutMs } = deps;
  let state: VerifierState = { status: "starting" };
  let module: WebAssembly.Module | undefined;
  /** Current pool; always set while the state is `running`. */
  let pool: ReturnType<typeof createWorkerPool> | undefined;
  let retryMs = firstRetryMs;
  let timer: NodeJS.Timeout | undefined;
  let pending = 0;

  function setState(next: VerifierState): void {
    if (state.status !== "stopped") {
      state = next;
      onState(next);
    }
  }

  async function start(): Promise<void> {
    try {
      // Compiled once; each thread instantiates the module itself.
      module ??= await WebAssembly.compile(await readFile(deps.library ?? (await findLibrary())));
      if (state.status !== "stopped") {
        pool = createWorkerPool({ module, notaryKeys }, timeoutMs, onProblem, fail);
        await pool.ready;
        retryMs = firstRetryMs;
        setState({ status: "running" });
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
    setState({
      status: "failed",
      why: module === undefined ? whyNotLoaded(error) : "its thread cannot be started",
    });
    void pool?.stop();
    timer = setTimeout(() => {
      starting = start();
    }, retryMs);
    retryMs = Math.min(2 * retryMs, maxRetryMs);
  }

  function requireRunning(): void {
    if (state.status === "failed" || state.status === "stopped") {
      const why = state.status === "failed" ? state.why : "the node stops";
      throw new RpcError("VERIFIER_NOT_RUNNING", `No attestation can be verified: ${why}.`);
    }
  }

  let starting = start();
  const started = starting;
  return {
    get state() {
      return state;
    },
    /** Worker thread, for tests, which may end it at any time. */
    get thread() {
      return pool?.thread;
    },
    /** Resolves when the first start has succeeded or failed. */
    started,
    async verify(bytes: Uint8Array): Promise<VerifiedPresentation> {
      requireRunning();
      if (pending >= maxPending) {
        throw busy("Too many attestations wait to be verified; try again in 5 s.");
      }
      pending++;
      try {
        await started;
        requireRunning();
        return await pool!.verify(bytes);
      } catch (error) {
        requireRunning();
        throw error;
      } finally {
        pending--;
      }
    },
    async stop(): Promise<void> {
      setState({ status: "stopped" });
      clearTimeout(timer);
      await pool?.stop();
      await starting;
    },
  };
}
