/**
 * The verifier: one thread at a time, a queue before it, and another thread after a time-out or a trap. Whatever is handed
 * in, the node itself only waits.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { Failure } from "../rpc/errors.js";
import type { VerifiedPresentation } from "./presentation.js";
import type { WorkerReply, WorkerSetup, WorkerTask } from "./verifier-thread.js";

/** How the verifier is. */
export type VerifierState =
  { readonly status: "starting" | "running" | "stopped" } | { readonly status: "failed"; readonly why: string };

/** What the verifier needs. */
export interface VerifierParts {
  /** Keys of notaries that are trusted, `algorithm:hex` each. */
  readonly notaryKeys: readonly string[];
  /** Hears of each change of the state. */
  readonly onState: (state: VerifierState) => void;
  /** Hears why a start failed, in words that are not for callers. */
  readonly onProblem: (error: unknown) => void;
  /** How long one verification may take. */
  readonly timeoutMs?: number;
  /** File of the library's WebAssembly; the installed one when left out. */
  readonly library?: string;
}

/** A verifier. */
export interface Verifier {
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

interface Waiting {
  readonly bytes: Uint8Array;
  readonly resolve: (presentation: VerifiedPresentation) => void;
  readonly reject: (failure: Failure) => void;
}

/** Most presentations that wait for their turn. */
const maxWaiting = 64;
const defaultTimeoutMs = 2_000;
const installedLibrary = createRequire(import.meta.url).resolve("tlsn-wasm/tlsn_wasm_bg.wasm");
/** How long a thread may take to get ready. */
const startWithinMs = 15_000;
/** Pauses after starts that failed. */
const firstRetryMs = 1_000;
const lastRetryMs = 60_000;
/** Heap of the thread beside its WebAssembly memory, for the arrays that the library makes of transcripts. */
const maxHeapMb = 64;

/** Starts a verifier. */
export function startVerifier(parts: VerifierParts): Verifier {
  const { notaryKeys, onState, onProblem, timeoutMs = defaultTimeoutMs, library = installedLibrary } = parts;
  const waiting: Waiting[] = [];
  let state: VerifierState = { status: "starting" };
  let thread: Worker | undefined;
  /** Handed to the thread: it is at the first one, and the second one keeps it busy when that is done. */
  let handedOver: { readonly id: number; readonly task: Waiting }[] = [];
  let deadline: NodeJS.Timeout | undefined;
  let lastId = 0;
  let retryMs = firstRetryMs;
  let timer: NodeJS.Timeout | undefined;
  let module: WebAssembly.Module | undefined;

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
      await startThread(module);
      retryMs = firstRetryMs;
      if (state.status !== "running") {
        move({ status: "running" });
      }
      next();
    } catch (error) {
      onProblem(error);
      fail(module === undefined ? "its library cannot be loaded" : "its thread cannot be started");
    }
  }

  function fail(why: string): void {
    if (state.status === "stopped") {
      return;
    }
    move({ status: "failed", why });
    waiting.splice(0).forEach(({ reject }) => reject(notRunning(why)));
    timer = setTimeout(() => void start(), retryMs);
    retryMs = Math.min(2 * retryMs, lastRetryMs);
  }

  async function startThread(compiled: WebAssembly.Module): Promise<void> {
    const setup: WorkerSetup = { module: compiled, notaryKeys };
    const made = new Worker(new URL("verifier-thread.js", import.meta.url), {
      workerData: setup,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 8 },
    });
    await new Promise<void>((resolve, reject) => {
      const giveUp = setTimeout(() => {
        void made.terminate();
        reject(new Error(`the verifier did not start within ${startWithinMs / 1000} s`));
      }, startWithinMs);
      made.once("message", () => {
        clearTimeout(giveUp);
        resolve();
      });
      made.on("error", reject).once("exit", () => {
        clearTimeout(giveUp);
        reject(new Error("the verifier ended while it started"));
      });
    });
    if (state.status === "stopped") {
      await made.terminate();
      return;
    }
    thread = made;
    made.on("message", (message: WorkerReply) => answered(made, message));
    // A thread that runs out of its heap says so by an error and ends.
    made.once("exit", () => ended(made, "The verifier ended in the middle of it; try again in 1 s."));
  }

  function next(): void {
    while (thread !== undefined && handedOver.length < 2 && waiting.length > 0) {
      const task = waiting.shift()!;
      const message: WorkerTask = { id: ++lastId, bytes: task.bytes };
      handedOver.push({ id: message.id, task });
      thread.postMessage(message);
      if (handedOver.length === 1) {
        startClock();
      }
    }
  }

  function startClock(): void {
    clearTimeout(deadline);
    if (handedOver.length > 0) {
      deadline = setTimeout(() => replace(`It took longer than ${timeoutMs / 1000} s; try again in 5 s.`), timeoutMs);
    }
  }

  function answered(from: Worker, message: WorkerReply): void {
    if (from !== thread || !("id" in message) || message.id !== handedOver[0]?.id) {
      return;
    }
    const { task } = handedOver.shift()!;
    startClock();
    const { verdict } = message;
    if ("presentation" in verdict) {
      task.resolve(verdict.presentation);
    } else {
      task.reject(new Failure("INVALID_ATTESTATION", `The attestation is refused. ${verdict.refused}`));
      if (verdict.trapped) {
        replace(undefined);
        return;
      }
    }
    next();
  }

  /**
   * Ends the thread and starts another one.
   *
   * @param why what the caller is told whose attestation it was at; undefined when it was at none.
   */
  function replace(why: string | undefined): void {
    const old = thread;
    thread = undefined;
    clearTimeout(deadline);
    const [first, ...others] = handedOver;
    handedOver = [];
    const kept = why === undefined ? [first, ...others] : others;
    if (why !== undefined) {
      first?.task.reject(busy(why));
    }
    waiting.unshift(...kept.flatMap((given) => given?.task ?? []));
    void old?.terminate();
    if (state.status === "running") {
      void start();
    }
  }

  function ended(which: Worker, why: string): void {
    if (which === thread) {
      replace(why);
    }
  }

  const started = start();
  return {
    get state() {
      return state;
    },
    get thread() {
      return thread;
    },
    started,
    verify(bytes) {
      if (state.status === "failed" || state.status === "stopped") {
        return Promise.reject(notRunning(state.status === "failed" ? state.why : "the node stops"));
      }
      if (waiting.length >= maxWaiting) {
        return Promise.reject(busy("Too many attestations wait to be verified; try again in 5 s."));
      }
      return new Promise((resolve, reject) => {
        waiting.push({ bytes, resolve, reject });
        next();
      });
    },
    async stop() {
      move({ status: "stopped" });
      clearTimeout(timer);
      const old = thread;
      thread = undefined;
      clearTimeout(deadline);
      [...waiting.splice(0), ...handedOver.splice(0).map(({ task }) => task)].forEach(({ reject }) =>
        reject(notRunning("the node stops")),
      );
      await old?.terminate();
      // One that was being started ends itself.
      await started;
    },
  };
}

function busy(why: string): Failure {
  return new Failure("BUSY", why, 5);
}

function notRunning(why: string): Failure {
  return new Failure("VERIFIER_NOT_RUNNING", `No attestation can be verified: ${why}.`);
}
