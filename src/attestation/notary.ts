/** A notary of the operator's own: asked now and then whether it answers, and for its public key. */
import { createPublicKey } from "node:crypto";
import { type Repetition, repeat } from "../base/repeat.js";

export interface NotaryState {
  readonly answers: boolean;
  /** Of the notary's program, as it tells it; undefined until it was told. */
  readonly version: string | undefined;
  /** `1:hex` where the key is one of secp256k1, otherwise as the notary gives it; undefined until it was told. */
  readonly publicKey: string | undefined;
}

export interface WatchedNotary extends Pick<Repetition, "stop"> {
  readonly state: NotaryState;
  /** Port of its URL. */
  readonly port: number;
}

const askEveryMs = 15_000;
const answerWithinMs = 2_000;
/** Most bytes of an answer; it has a few hundred. */
const maxAnswerBytes = 64 * 1024;

/** Asks the notary at once and then again and again. */
export function watchNotary(url: string, onChange: (state: NotaryState) => void): WatchedNotary {
  const { port, protocol } = new URL(url);
  let state: NotaryState = { answers: false, version: undefined, publicKey: undefined };
  const stopped = new AbortController();
  const asking = repeat(
    async () => {
      const told = await fetchInfo(url, stopped.signal).catch(() => undefined);
      if (stopped.signal.aborted) {
        return;
      }
      const next: NotaryState = { ...state, ...told, answers: told !== undefined };
      const changed = next.answers !== state.answers || next.publicKey !== state.publicKey;
      state = next;
      if (changed) {
        onChange(state);
      }
    },
    askEveryMs,
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
      await asking.stop();
    },
  };
}

/** What `/info` tells. Rejects when there is no key. */
async function fetchInfo(url: string, signal: AbortSignal): Promise<Pick<NotaryState, "version" | "publicKey">> {
  const response = await fetch(new URL("info", url.endsWith("/") ? url : `${url}/`), {
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]),
    redirect: "error",
  });
  const text = await readText(response);
  const { publicKey, version } = JSON.parse(text) as { readonly publicKey?: unknown; readonly version?: unknown };
  if (!response.ok || typeof publicKey !== "string") {
    throw new Error("no key");
  }
  return { publicKey: describeKey(publicKey), version: typeof version === "string" ? version : undefined };
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxAnswerBytes) {
      throw new Error("too large");
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A PEM key of secp256k1 in the form that `--notary-keys` takes. */
function describeKey(text: string): string {
  try {
    const { crv, x, y } = createPublicKey(text).export({ format: "jwk" });
    if (crv === "secp256k1" && x !== undefined && y !== undefined) {
      const isOdd = Buffer.from(y, "base64url").at(-1)! % 2 === 1;
      return `1:${isOdd ? "03" : "02"}${Buffer.from(x, "base64url").toString("hex").padStart(64, "0")}`;
    }
  } catch {
    // Not PEM: shown as it is.
  }
  return text.slice(0, 1_000);
}
