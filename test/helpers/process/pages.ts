/** Requests pages over HTTP/1.1 and HTTP/2, and checks them in a browser with axe. */
import type { ExecutionContext } from "ava";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { request as httpRequest } from "node:http";
import { buffer } from "node:stream/consumers";
import { once } from "node:events";
import type { Page } from "playwright-core";

/** A response with its raw body. */
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

/** Functions that request a page over a new connection, by HTTP version. */
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

/** Returns the violations of all rules of axe on a page, without changing its content security policy. */
export async function findByAxe(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

export const desktop = { width: 1200, height: 900 };
export const phone = { width: 360, height: 800 };

/** Takes a screenshot if PICTURES names a directory. */
async function picture(page: Page, name: string): Promise<void> {
  const directory = process.env["PICTURES"];
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
  }
}

const devices = { desktop, phone };
const backs = { light: "rgb(250, 250, 250)", dark: "rgb(18, 20, 22)" };

/** All combinations of color scheme and width. */
export const everyWay = ["desktop light", "desktop dark", "phone light", "phone dark"] as const;
export const bothWays = ["desktop light", "phone dark"] as const;
/** Two combinations that cover both color schemes and both widths, for slow checks. */
export const threeWays = ["desktop light", "desktop dark", "phone dark"] as const;

/** Checks that axe finds nothing, and that nothing is wider than the window. */
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
