/** Pages as their readers get them: bytes over either HTTP, and what axe finds in a browser. */
import type { ExecutionContext } from "ava";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { request as httpRequest } from "node:http";
import { buffer } from "node:stream/consumers";
import { once } from "node:events";
import type { Page } from "playwright-core";

/** A response whose body is bytes as they were sent. */
export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type GetRaw = (
  port: number,
  path: string,
  headers?: Readonly<Record<string, string>>,
  method?: string,
) => Promise<RawResponse>;

/** By the HTTP that carries it, over a connection of its own. */
export const getRaw: Readonly<Record<"HTTP/1.1" | "HTTP/2", GetRaw>> = {
  async "HTTP/1.1"(port, path, headers = {}, method = "GET") {
    const request = httpRequest({ port, host: "127.0.0.1", path, headers, method, agent: false }).end();
    const [response] = (await once(request, "response")) as [
      AsyncIterable<Buffer> & { statusCode: number; headers: IncomingHttpHeaders },
    ];
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  },
  async "HTTP/2"(port, path, headers = {}, method = "GET") {
    const session = connect(`http://127.0.0.1:${port}`);
    try {
      const stream = session.request({ ...headers, ":path": path, ":method": method });
      const [answered] = (await once(stream, "response")) as [IncomingHttpHeaders];
      return { status: Number(answered[":status"]), headers: answered, body: await buffer(stream) };
    } finally {
      session.close();
    }
  },
};

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

let axe: string | undefined;

/** What axe finds on a page as it is now, by all of its rules; the policy of the page stays as it is. */
export async function findByAxe(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

export const desktop = { width: 1200, height: 900 };
export const phone = { width: 360, height: 800 };

/** A picture, where PICTURES names a directory for it. */
async function picture(page: Page, name: string): Promise<void> {
  const directory = process.env["PICTURES"];
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
  }
}

const devices = { desktop, phone };
const backs = { light: "rgb(250, 250, 250)", dark: "rgb(18, 20, 22)" };

/** Ways in which a page is seen: all of them, and as many as have each of both once. */
export const everyWay = ["desktop light", "desktop dark", "phone light", "phone dark"] as const;
export const bothWays = ["desktop light", "phone dark"] as const;
/** Both colors, and both widths, where each look takes long. */
export const threeWays = ["desktop light", "desktop dark", "phone dark"] as const;

/** Nothing is found by axe, and nothing is wider than the window. */
export async function inspect(t: ExecutionContext, page: Page, name: string, ways: readonly string[]): Promise<void> {
  for (const way of ways) {
    const [device, colorScheme] = way.split(" ") as [keyof typeof devices, keyof typeof backs];
    await page.setViewportSize(devices[device]);
    await page.emulateMedia({ colorScheme });
    t.is(await page.evaluate("getComputedStyle(document.body).backgroundColor"), backs[colorScheme]);
    t.deepEqual(await findByAxe(page), [], `${name}, ${way}`);
    t.is(await page.evaluate("document.documentElement.scrollWidth"), devices[device].width, `${name}, ${way}`);
    await picture(page, `${name}-${device}-${colorScheme}`);
  }
}
