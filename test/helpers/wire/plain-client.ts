/** A plain HTTP client that exposes every byte of the response. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";

/** A complete response. */
export interface PlainResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request. */
export interface PlainRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

/** Sends a request over a new connection. The path is sent without normalization. */
export function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: PlainRequest = {},
  localAddress = "127.0.0.1",
): Promise<PlainResponse> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method, headers, localAddress, agent: false };
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString("utf8"),
        }),
      );
    });
    request.once("error", reject);
    request.end(body);
  });
}

/** Requests JSON. */
export async function askJson<T = Record<string, unknown>>(port: number, path: string): Promise<T> {
  return JSON.parse((await ask(port, path)).text) as T;
}
