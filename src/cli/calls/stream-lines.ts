/** Client for streams of JSON lines. */
import { type IncomingMessage, request as requestHttp, type RequestOptions } from "node:http";

/** Limit on silence in a stream: a node sends a message every 15 s. */
const idleMs = 45_000;
/** Limit on the length of a line, longer than any message. */
export const maxLineBytes = 16 * 1024 * 1024;

/** Opens a stream. Resolves with every response; its status may be an error. */
export async function openStream(
  url: URL,
  { headers = {}, signal }: { readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal } = {},
): Promise<IncomingMessage> {
  const options: RequestOptions = {
    agent: false,
    timeout: idleMs,
    headers: { ...headers, Accept: "application/jsonl" },
    ...(signal !== undefined && { signal }),
  };
  // Load TLS only for https.
  const open = url.protocol === "https:" ? (await import("node:https")).request : requestHttp;
  return await new Promise((resolve, reject) => {
    const request = open(url, options);
    request.on("timeout", () => request.destroy(new Error(`no data for ${idleMs / 1000} s`)));
    request.on("error", reject);
    request.on("response", resolve);
    request.end();
  });
}

/** Yields the messages of a stream, one for each line, until the stream ends. */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<string, void> {
  let rest = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    if (rest.length > maxLineBytes) {
      throw new Error(`a message is longer than ${maxLineBytes} bytes`);
    }
    yield* lines.filter((line) => line !== "");
  }
}
