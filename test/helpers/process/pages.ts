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
  async "HTTP/2"(port, path, requestHeaders = {}, method = "GET") {
    const session = connect(`http://127.0.0.1:${port}`);
    try {
      const stream = session.request({ ...requestHeaders, ":path": path, ":method": method });
      const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
      return { status: Number(headers[":status"]), headers, body: await buffer(stream) };
    } finally {
      session.close();
    }
  },
};

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

let axe: string | undefined;

/** Returns all violations that axe finds on a page. Works with the content security policy of the page. */
export async function findByAxe(page: Page): Promise<string[]> {
  axe ??= await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
  const { violations } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

const desktop = { width: 1200, height: 900 };
export const phone = { width: 360, height: 800 };

/** Saves a screenshot if the environment variable PICTURES names a directory. */
async function screenshot(page: Page, name: string): Promise<void> {
  const directory = process.env["PICTURES"];
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
  }
}

const devices = { desktop, phone };
/** Background colors of the pages by color scheme. */
const backgrounds = { light: "rgb(250, 250, 250)", dark: "rgb(18, 20, 22)" };

/** All combinations of width and color scheme. */
export const allVariants = ["desktop light", "desktop dark", "phone light", "phone dark"] as const;
/** Two combinations that cover both widths and both color schemes, for slow checks. */
export const twoVariants = ["desktop light", "phone dark"] as const;
export const threeVariants = ["desktop light", "desktop dark", "phone dark"] as const;

/**
 * Checks a page in each variant: axe finds no accessibility problem, the colors match the color scheme, and no element
 * is wider than the window.
 */
export async function inspect(
  t: ExecutionContext,
  page: Page,
  name: string,
  variants: readonly string[],
): Promise<void> {
  for (const variant of variants) {
    const [device, colorScheme] = variant.split(" ") as [keyof typeof devices, keyof typeof backgrounds];
    await page.setViewportSize(devices[device]);
    await page.emulateMedia({ colorScheme });
    t.is(await page.evaluate("getComputedStyle(document.body).backgroundColor"), backgrounds[colorScheme]);
    t.deepEqual(await findByAxe(page), [], `${name}, ${variant}`);
    t.is(await page.evaluate("document.documentElement.scrollWidth"), devices[device].width, `${name}, ${variant}`);
    await screenshot(page, `${name}-${device}-${colorScheme}`);
  }
}
