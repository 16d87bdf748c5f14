/** State of the operator's own notary. The node polls its availability and its public key. */
import { createPublicKey } from "node:crypto";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { type PeriodicTask, startPeriodicTask } from "../base/async/periodic-task.js";

export interface NotaryState {
  readonly isReachable: boolean;
  /** Version of the notary's program; undefined until the first response. */
  readonly version: string | undefined;
  /** `1:hex` for a secp256k1 key, otherwise the text that the notary returned; undefined until the first response. */
  readonly publicKey: string | undefined;
}

export interface WatchedNotary extends Pick<PeriodicTask, "stop"> {
  readonly state: NotaryState;
  readonly port: number;
}

const pollIntervalMs = 15_000;
const timeoutMs = 2_000;
/** Limit on the size of a response in bytes; a response normally has a few hundred. */
const maxResponseBytes = 64 * 1024;

/** Polls the notary, immediately and then every 15 s. */
export function watchNotary(url: string, onChange: (state: NotaryState) => void): WatchedNotary {
  const { port, protocol } = new URL(url);
  let state: NotaryState = { isReachable: false, version: undefined, publicKey: undefined };
  const stopped = new AbortController();
  const polling = startPeriodicTask(
    async () => {
      const info = await fetchInfo(url, stopped.signal).catch(() => undefined);
      if (stopped.signal.aborted) {
        return;
      }
      const newState: NotaryState = { ...state, ...info, isReachable: info !== undefined };
      const changed = newState.isReachable !== state.isReachable || newState.publicKey !== state.publicKey;
      state = newState;
      if (changed) {
        onChange(state);
      }
    },
    pollIntervalMs,
    () => undefined,
    0,
  );
  return {
    get state() {
      return state;
    },
    port: Number(port || (protocol === "https:" ? 443 : 80)),
    async stop() {
      stopped.abort();
      await polling.stop();
    },
  };
}

/** Requests `/info`. Rejects if the response has no key, if it takes longer than 2 s, or if `stopped` is aborted. */
async function fetchInfo(url: string, stopped: AbortSignal): Promise<Pick<NotaryState, "version" | "publicKey">> {
  // Not AbortSignal.any or AbortSignal.timeout: Node.js 20 garbage-collects these signals while a caller awaits them.
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  stopped.addEventListener("abort", abort);
  try {
    return await readInfo(new URL("info", url.endsWith("/") ? url : `${url}/`), controller.signal);
  } finally {
    clearTimeout(timer);
    stopped.removeEventListener("abort", abort);
  }
}

async function readInfo(url: URL, signal: AbortSignal): Promise<Pick<NotaryState, "version" | "publicKey">> {
  const response = await fetch(url, { signal, redirect: "error" });
  const text = await readText(response, signal);
  const { publicKey, version } = JSON.parse(text) as { readonly publicKey?: unknown; readonly version?: unknown };
  if (!response.ok || typeof publicKey !== "string") {
    throw new Error("no key");
  }
  return { publicKey: describeKey(publicKey), version: typeof version === "string" ? version : undefined };
}

/**
 * Reads a body until the signal is aborted. Node.js 20 and 22 lose the signal of `fetch` to garbage collection while a
 * body arrives, so this stream has the signal itself.
 */
async function readText({ body }: Response, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const stream = body === null ? [] : Readable.fromWeb(body as ReadableStream, { signal });
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxResponseBytes) {
      throw new Error("too large");
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Converts a PEM secp256k1 key to the form of `--notary-keys`. Returns other texts unchanged, up to 1,000 characters.
 */
function describeKey(text: string): string {
  try {
    const { crv, x, y } = createPublicKey(text).export({ format: "jwk" });
    if (crv === "secp256k1" && x !== undefined && y !== undefined) {
      const isOdd = Buffer.from(y, "base64url").at(-1)! % 2 === 1;
      return `1:${isOdd ? "03" : "02"}${Buffer.from(x, "base64url").toString("hex").padStart(64, "0")}`;
    }
  } catch {
    // Not a PEM key: return the text.
  }
  return text.slice(0, 1_000);
}
