/**
 * What the worker thread does: it verifies presentations. It has the compiled module, a memory that cannot grow beyond its
 * cap, no environment, and the list of trusted notary keys, which are looked at before anything costly is done.
 */
import { workerData } from "node:worker_threads";
import type { Presentation as PresentationType } from "tlsn-wasm";
import { type Revealed, trappedCode, type Verdict, type VerifiedPresentation } from "./presentation.js";

/** What the thread is started with. */
export interface WorkerSetup {
  readonly module: WebAssembly.Module;
  /** `algorithm:hex` of each. */
  readonly notaryKeys: readonly string[];
}

/** Most WebAssembly memory, in pages of 64 KiB. A forged length would take as much as there is. */
const maxPages = 1_024;
const initialPages = 99;

interface Range {
  readonly start: number;
  readonly end: number;
}

// Nobody reads the stacks of this thread's errors, and most presentations cost one.
Error.stackTraceLimit = 0;
const { module, notaryKeys } = workerData as WorkerSetup;
const trusted = new Set(notaryKeys);

// The library's code for browsers listens on the global object of a web worker, for threads that are never started.
Object.assign(globalThis, { self: { addEventListener: () => undefined, postMessage: () => undefined } });
const { initSync, Presentation } = await import("tlsn-wasm");
const memory = new WebAssembly.Memory({ initial: initialPages, maximum: maxPages, shared: true });
initSync({ module, memory });

/** Answers once the library is there, which is all that a first task is for. */
export function ready(): void {
  return;
}

/** Verifies presentations in bincode; does not settle when the library trapped, since the thread ends then. */
export function verify(presentations: readonly Uint8Array[]): readonly Verdict[] | Promise<never> {
  const verdicts: Verdict[] = [];
  for (const bytes of presentations) {
    try {
      verdicts.push({ presentation: read(bytes) });
    } catch (error) {
      if (isTrap(error)) {
        return end();
      }
      verdicts.push({ refused: explain(error) });
    }
  }
  return verdicts;
}

/** A trap leaves the instance in a state that nobody knows; so does a memory that could not grow. */
function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}

/**
 * Ends the thread before another presentation can come: what is thrown outside of a task nobody catches, and it reaches
 * the node as what the task failed with.
 */
function end(): Promise<never> {
  queueMicrotask(() => {
    throw Object.assign(new Error("The library trapped."), { code: trappedCode });
  });
  return new Promise(() => undefined);
}

function read(bytes: Uint8Array): VerifiedPresentation {
  const presentation = Presentation.deserialize(bytes);
  try {
    const key = presentation.verifying_key();
    const notaryKey = `${key.alg}:${Buffer.from(key.data).toString("hex")}`;
    if (!trusted.has(notaryKey)) {
      throw new Refusal(`Its notary ${notaryKey} is not trusted here (--notary-keys).`);
    }
    if (isPresentation(bytes.subarray(0, -1))) {
      throw new Refusal("It has bytes behind its end.");
    }
    return describe(presentation.verify(), notaryKey);
  } finally {
    // Verifying does not free it, and the garbage collector knows nothing of the library's memory.
    presentation.free();
  }
}

function describe(output: ReturnType<PresentationType["verify"]>, notaryKey: string): VerifiedPresentation {
  const { server_name: serverName, connection_info: connection, transcript, attestation } = output;
  // The types say an instance of a class; what comes are the fields that were signed.
  const { header } = attestation as unknown as { readonly header: { readonly id: number[] } };
  const { sent, recv } = connection.transcript_length;
  return {
    serverName,
    connectionTimeS: connection.time,
    sentLength: sent,
    recvLength: recv,
    notaryKey,
    attestationId: Buffer.from(header.id).toString("hex"),
    sent: transcript === undefined ? [] : reveal(transcript.sent, transcript.sent_authed),
    recv: transcript === undefined ? [] : reveal(transcript.recv, transcript.recv_authed),
  };
}

/** The library passes over what comes after a presentation: then there is one without the last byte too. */
function isPresentation(bytes: Uint8Array): boolean {
  try {
    Presentation.deserialize(bytes).free();
    return true;
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      throw error;
    }
    return false;
  }
}

/** Each authenticated range by itself: what lies between two of them is hidden, and joins nothing. */
function reveal(bytes: readonly number[], ranges: readonly Range[]): Revealed[] {
  const all = bufferOf(bytes);
  return ranges.map(({ start, end }) => ({ start, end, text: all.toString("utf8", start, end) }));
}

/** The library makes arrays of a kind that the constructors of typed arrays copy at a tenth of the speed of this. */
function bufferOf(bytes: readonly number[]): Buffer {
  const buffer = Buffer.alloc(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    buffer[i] = bytes[i]!;
  }
  return buffer;
}

/** A reason of this node's own. */
class Refusal extends Error {}

function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof Refusal ? message : `It does not verify: ${message.slice(0, 300)}.`;
}
