/**
 * Worker thread that verifies presentations. It has the compiled module, memory with a fixed limit, no environment, and
 * the list of trusted notary keys. It checks the key of a presentation before any expensive step.
 */
import { workerData } from "node:worker_threads";
import type { Presentation as PresentationType } from "tlsn-wasm";
import { type Revealed, trappedCode, type Verdict, type VerifiedPresentation } from "./presentation.js";

export interface WorkerSetup {
  readonly module: WebAssembly.Module;
  /** Trusted keys, `algorithm:hex` each. */
  readonly notaryKeys: readonly string[];
}

/**
 * Limit on WebAssembly memory in pages of 64 KiB. Without a limit, a forged length would allocate all available memory.
 */
const maxPages = 1_024;
const initialPages = 99;

interface Range {
  readonly start: number;
  readonly end: number;
}

// Most presentations cause an error in this thread, and no code reads the stacks.
Error.stackTraceLimit = 0;
const { module, notaryKeys } = workerData as WorkerSetup;
const trusted = new Set(notaryKeys);

// The library's browser code adds listeners to the global object of a web worker, for threads that it never starts
// here.
Object.assign(globalThis, { self: { addEventListener: () => undefined, postMessage: () => undefined } });
const { initSync, Presentation } = await import("tlsn-wasm");
const memory = new WebAssembly.Memory({ initial: initialPages, maximum: maxPages, shared: true });
initSync({ module, memory });

/** Returns once the thread has loaded the library. The first task of a thread calls it for this effect alone. */
export function ready(): void {
  return;
}

/**
 * Verifies presentations in bincode. The promise never settles after a trap of the library, since the thread ends then.
 */
export function verify(presentations: readonly Uint8Array[]): readonly Verdict[] | Promise<never> {
  const verdicts: Verdict[] = [];
  for (const bytes of presentations) {
    try {
      verdicts.push({ presentation: verifyOne(bytes) });
    } catch (error) {
      if (isTrap(error)) {
        return endThread();
      }
      verdicts.push({ rejected: rejectionReason(error) });
    }
  }
  return verdicts;
}

/**
 * Returns true if the error leaves the WebAssembly instance in an unknown state: a trap, or memory that cannot grow.
 */
function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}

/**
 * Ends the thread before it reads another presentation. No code catches an error thrown outside of a task; the node
 * receives it as the error of the present task.
 */
function endThread(): Promise<never> {
  queueMicrotask(() => {
    throw Object.assign(new Error("The library trapped."), { code: trappedCode });
  });
  return new Promise(() => undefined);
}

function verifyOne(bytes: Uint8Array): VerifiedPresentation {
  const presentation = Presentation.deserialize(bytes);
  try {
    const key = presentation.verifying_key();
    const notaryKey = `${key.alg}:${Buffer.from(key.data).toString("hex")}`;
    if (!trusted.has(notaryKey)) {
      throw new Rejection(`Its notary ${notaryKey} is not trusted here (--notary-keys).`);
    }
    if (isPresentation(bytes.subarray(0, -1))) {
      throw new Rejection("It has extra bytes after its end.");
    }
    return describe(presentation.verify(), notaryKey);
  } finally {
    // Verifying does not free the presentation, and the garbage collector does not manage the library's memory.
    presentation.free();
  }
}

function describe(output: ReturnType<PresentationType["verify"]>, notaryKey: string): VerifiedPresentation {
  const { server_name: serverName, connection_info: connection, transcript, attestation } = output;
  // The types declare a class instance; the actual value is an object with the signed fields.
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

/**
 * Returns true if the bytes decode as a presentation. The library ignores bytes after a presentation, so that one with
 * trailing bytes still decodes without its last byte.
 */
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

/**
 * Decodes each authenticated range separately: the bytes between two ranges are hidden, so the ranges must not be
 * joined.
 */
function reveal(bytes: readonly number[], ranges: readonly Range[]): Revealed[] {
  const buffer = copyBytes(bytes);
  return ranges.map(({ start, end }) => ({ start, end, text: buffer.toString("utf8", start, end) }));
}

/**
 * Copies the library's arrays. This loop is ten times as fast as a typed array constructor, which is slow on such
 * arrays.
 */
function copyBytes(bytes: readonly number[]): Buffer {
  const buffer = Buffer.alloc(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    buffer[i] = bytes[i]!;
  }
  return buffer;
}

class Rejection extends Error {}

function rejectionReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof Rejection ? message : `It does not verify: ${message.slice(0, 300)}.`;
}
