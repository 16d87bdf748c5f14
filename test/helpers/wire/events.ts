/** A client of the event stream, as JSON lines over plain HTTP. */
import { connectTransport } from "./transports.js";
import { until } from "../nodes/until.js";

/** A message in JSON. */
export interface EventJson {
  readonly cursor: string;
  readonly blockNumber: number;
  readonly block?: { readonly hash: string; readonly transactionCount: number; readonly header: { number: number } };
  readonly transaction?: {
    readonly hash: string;
    readonly outcome: string;
    readonly withheld: boolean;
    readonly index?: number;
    readonly sender?: string;
    readonly storageAddress?: string;
    readonly reason?: string;
  };
  readonly program?: {
    readonly storageAddress: string;
    readonly change: string;
    readonly fields: readonly string[];
    readonly transactionHash: string;
  };
  readonly nullifier?: { readonly nullifierHash: string };
  readonly commitments?: { readonly commitments: readonly string[]; readonly root: string };
  readonly head?: { readonly statement: { readonly number: number } };
  readonly progress?: object;
  /** The error that ended the stream. */
  readonly errorCode?: string;
}

/** An open event stream. */
export type Listener = Awaited<ReturnType<typeof listen>>;

/** Returns true for events of blocks and rejections. Signed heads and progress arrive at any time. */
export const isEvent = ({ progress, head }: EventJson): boolean => progress === undefined && head === undefined;

/** Returns the number of the last complete block at a message. */
export const blockDone = ({ cursor }: EventJson): number =>
  cursor.includes(".") ? Number(cursor.split(".")[0]) - 1 : Number(cursor);

/** Opens a stream from now on. Resolves at the start of the response. An error response becomes a message. */
export async function listen(port: number, query = "", headers: Readonly<Record<string, string>> = {}) {
  const client = connectTransport("HTTP/1.1", { port });
  const ended = new AbortController();
  const request = { headers: { accept: "application/jsonl", ...headers } };
  const { status, body } = await client.open(`/events${query}`, request, ended.signal);
  const heard: EventJson[] = [];
  let isOver = false;
  const read = async (): Promise<void> => {
    let rest = "";
    for await (const piece of body) {
      const lines = (rest + piece.toString()).split("\n");
      rest = lines.pop()!;
      heard.push(...lines.filter((line) => line !== "").map((line) => JSON.parse(line) as EventJson));
    }
    heard.push(...(rest === "" ? [] : [JSON.parse(rest) as EventJson]));
  };
  const reading = read()
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
      client.close();
    });
  return {
    status,
    /** All received messages. */
    heard: heard as readonly EventJson[],
    /** True if the node has ended the stream. */
    get isOver() {
      return isOver;
    },
    /** Resolves to the first events, without progress and heads, once this many have arrived. */
    async take(count: number): Promise<EventJson[]> {
      await until(() => heard.filter(isEvent).length >= count, `${count} events`);
      return heard.filter(isEvent).slice(0, count);
    },
    /** Resolves to the events up to the end of a block. */
    async takeTo(block: number): Promise<EventJson[]> {
      await until(() => heard.some((one) => blockDone(one) >= block), `the end of block ${block}`);
      return heard.filter((one) => isEvent(one) && one.blockNumber <= block);
    },
    end() {
      ended.abort();
      client.close();
      void reading;
    },
  };
}
