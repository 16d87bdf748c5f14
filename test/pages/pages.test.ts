/** Tests how /status, /docs and /explore are served, and /status in a browser. */
import test, { type ExecutionContext } from "ava";
import { syncBuiltinESMExports } from "node:module";
import { setImmediate } from "node:timers/promises";
import zlib, { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createPageServer } from "../../src/rpc/http/pages.js";
import { launchBrowser, openPage, whyNoBrowser } from "../helpers/process/browser.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { twoVariants, allVariants, getRaw, inspect, phone } from "../helpers/process/pages.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { version } from "../../src/base/version.js";

/** Node of all tests. The last test stops it. */
let node: TestNode;
const file = fileTeardown();
test.before(async () => {
  node = await startMember(file);
  // The node adds a point to its history each minute, so that the history does not change during the tests.
  await until(async () => (await askJson<StatusData>(node.port, "/status/data")).atMs.length > 0);
});

test.serial("pages have a content security policy that allows no content from other servers", async (t) => {
  for (const path of ["/status", "/docs", "/explore", "/latest"]) {
    const { status, headers, text } = await ask(node.port, path);
    t.is(status, 200);
    t.is(headers["content-type"], "text/html; charset=utf-8");
    const policy = String(headers["content-security-policy"]);
    t.regex(policy, /default-src 'none'; frame-ancestors 'none'/);
    t.notRegex(policy, /https?:|\*|unsafe|script-src[^;]*'self'/);
    t.notRegex(text, /(src|href)="(https?:)?\/\//);
    t.is(headers["x-content-type-options"], "nosniff");
    t.is((await ask(node.port, path, { method: "HEAD" })).status, 200);
    t.is((await ask(node.port, path, { method: "POST" })).status, 405);
  }
});

const documents = ["/status", "/docs", "/explore", "/latest", "/openapi.json", "/status/data"];
const decoders = { br: brotliDecompressSync, gzip: gunzipSync };

for (const [http, get] of Object.entries(getRaw)) {
  test.serial(`compresses documents with an encoding that the client accepts, over ${http}`, async (t) => {
    for (const path of documents) {
      const plain = await get(node.port, path);
      t.is(plain.status, 200);
      t.is(plain.headers["content-encoding"], undefined);
      t.is(plain.headers["vary"], "Accept-Encoding");
      const etags = new Set([plain.headers.etag]);
      for (const coding of ["br", "gzip"] as const) {
        const { headers, body } = await get(node.port, path, { "accept-encoding": coding });
        t.is(headers["content-encoding"], coding, path);
        t.is(headers["vary"], "Accept-Encoding");
        t.is(Number(headers["content-length"]), body.length);
        t.true(decoders[coding](body).equals(plain.body), path);
        t.true(path === "/status/data" || body.length < plain.body.length / 2, `${path} ${coding} ${body.length}`);
        etags.add(headers.etag);
        const head = await get(node.port, path, { "accept-encoding": coding }, "HEAD");
        t.is(head.headers["content-length"], headers["content-length"]);
        t.is(head.headers.etag, headers.etag);
        t.is(head.body.length, 0);
      }
      // Each encoding has its own ETag, so that a cache does not confuse them.
      t.is(etags.size, 3, path);
    }
  });

  test.serial(`responds with 304 to a client that has the current document, over ${http}`, async (t) => {
    for (const path of documents) {
      for (const coding of ["br", "gzip", "identity"]) {
        const accept = { "accept-encoding": coding };
        const { headers } = await get(node.port, path, accept);
        t.regex(String(headers.etag), /^"[\w-]{22}(-br|-gzip)?"$/);
        t.is(headers["cache-control"], "no-cache");
        for (const known of [headers.etag!, `W/${headers.etag!}`, `"another", ${headers.etag!}`, "*"]) {
          const again = await get(node.port, path, { ...accept, "if-none-match": known });
          t.is(again.status, 304, `${path} ${known}`);
          t.is(again.body.length, 0);
          t.is(again.headers.etag, headers.etag);
          t.is(again.headers["vary"], "Accept-Encoding");
          t.is(again.headers["content-length"], undefined);
        }
        const other = await get(node.port, path, { ...accept, "if-none-match": '"another"' });
        t.is(other.status, 200);
      }
    }
  });
}

test.serial("selects the preferred encoding of the client, and never rejects a request", async (t) => {
  for (const [accepted, coding] of [
    ["gzip, deflate, br, zstd", "br"],
    ["gzip, deflate", "gzip"],
    ["GZIP", "gzip"],
    ["x-gzip", "gzip"],
    ["br;q=0.5, gzip;q=1", "gzip"],
    ["br;q=0, gzip;q=0.1", "gzip"],
    ["identity, gzip;q=0.5", undefined],
    ["*", "br"],
    ["*, br;q=0", "gzip"],
    ["*;q=0", undefined],
    ["br;q=nonsense", undefined],
    ["br;q=0x1, gzip;q=0.5", "gzip"],
    ["br;q=1e0, gzip;q=0.001", "gzip"],
    ["deflate", undefined],
    ["", undefined],
    [",;q=1;,", undefined],
  ] as const) {
    const { status, headers } = await ask(node.port, "/status", { headers: { "accept-encoding": accepted } });
    t.is(status, 200);
    t.is(headers["content-encoding"], coding, accepted);
  }
});

test.serial("compresses a document for the next request after compression failed", async (t) => {
  const pages = createPageServer({ "/a": { contentType: "text/plain", load: () => "text" } });
  const header = (name: string) => (name === "accept-encoding" ? "gzip" : undefined);
  const { gzip } = zlib;
  zlib.gzip = ((_: unknown, done: (error: Error) => void) => done(new Error("no memory"))) as never;
  syncBuiltinESMExports();
  try {
    await t.throwsAsync(pages.respond({ path: "/a", header }, []), { message: "no memory" });
  } finally {
    zlib.gzip = gzip;
    syncBuiltinESMExports();
  }
  t.is((await pages.respond({ path: "/a", header }, [])).status, 200);
});

test("concurrent requests for a changed document load it once, and load it again after an error", async (t) => {
  let loads = 0;
  const load = async (): Promise<string> => {
    loads++;
    await setImmediate();
    if (loads === 1) {
      throw new Error("no database");
    }
    return "text";
  };
  const pages = createPageServer({ "/a": { contentType: "text/plain", load, revision: () => 7 } });
  const read = () => pages.respond({ path: "/a", header: () => undefined }, []);
  const readMany = () => Promise.allSettled(Array.from({ length: 10 }, read));
  t.deepEqual(new Set((await readMany()).map(({ status }) => status)), new Set(["rejected"]));
  t.is(loads, 1);
  t.deepEqual(new Set((await readMany()).map(({ status }) => status)), new Set(["fulfilled"]));
  t.is(loads, 2);
});

test("a changed document has another ETag", async (t) => {
  let revision = 0;
  const pages = createPageServer({
    "/a": { contentType: "text/plain", load: () => `revision ${revision}`, revision: () => revision },
  });
  const read = async (known?: string) => {
    const header = (name: string) => (name === "if-none-match" ? known : undefined);
    const { status, headers, body } = await pages.respond({ path: "/a", header }, []);
    return { status, etag: headers[headers.indexOf("ETag") + 1]!, text: String(body) };
  };
  const first = await read();
  t.is(first.text, "revision 0");
  t.is((await read(first.etag)).status, 304);
  revision++;
  const second = await read(first.etag);
  t.like(second, { status: 200, text: "revision 1" });
  t.not(second.etag, first.etag);
});

interface StatusData {
  readonly database: string;
  readonly everyMs: number;
  readonly atMs: readonly number[];
  readonly status: readonly string[];
  readonly block: readonly number[];
  readonly behind: readonly (number | null)[];
  readonly pending: readonly number[];
  readonly transactions: readonly (number | null)[];
  readonly commitments: readonly number[];
  readonly online: readonly number[];
}

test.serial("the history of a node has only data that the public API returns", async (t) => {
  const { atMs, ...data } = await askJson<StatusData>(node.port, "/status/data");
  const health = await askJson<HealthBody>(node.port, "/health");
  const head = await askJson<{ number: number }>(node.port, "/chain/head");
  t.deepEqual(data, {
    ...{ database: "SQLite", everyMs: 60_000, status: [health.status], block: [head.number] },
    ...{ behind: [null], pending: [0], transactions: [null], commitments: [0], online: [0] },
  });
  t.true(Math.abs(Date.now() - atMs[0]!) < 600_000);
});

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

/** Opens a page of the node, and records its errors and requests. */
const open = async (t: ExecutionContext, path: string, options: BrowserContextOptions = {}) =>
  await openPage(t, browser, `${node.rpcUrl}${path}`, options);

/** Returns a history of one day, in which the node was failing for 20 minutes and did not run for 2 hours. */
function createHistory(nowMs: number): StatusData {
  const minutes = Array.from({ length: 1440 }, (_, i) => 1440 - i).filter((ago) => ago > 700 || ago <= 580);
  return {
    ...{ database: "SQLite", everyMs: 60_000 },
    atMs: minutes.map((ago) => nowMs - ago * 60_000),
    status: minutes.map((ago) => (ago > 100 && ago <= 120 ? "failing" : "ok")),
    block: minutes.map((ago) => Math.floor((1440 - ago) / 2)),
    behind: minutes.map(() => 0),
    pending: minutes.map((ago) => (ago > 100 && ago <= 120 ? 120 - ago + 5 : 5)),
    transactions: minutes.map(() => 1),
    commitments: minutes.map(() => 7),
    online: minutes.map((ago) => (ago > 1000 ? 3 : 2)),
  };
}

testBrowser.serial("the status page shows the node, its network, and the health with reasons", async (t) => {
  const { page, go, errors, requests } = await open(t, "/status");
  await go();
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  const { host } = new URL(node.rpcUrl);
  t.is(await page.title(), `ok · ${host} · Gatehouse`);
  const info = await askJson<{ identity: string }>(node.port, "/info");
  const head = await askJson<{ genesisHash: string }>(node.port, "/chain/head");
  t.deepEqual(await page.locator("dd").allTextContents(), [info.identity, node.rpcUrl, head.genesisHash, "SQLite"]);
  t.true((await page.getByRole("row").count()) >= 12);
  await page.getByRole("row", { name: /^chain ready/ }).waitFor();
  t.is(
    await page
      .getByRole("row", { name: /^rpc ready/ })
      .locator(".small")
      .last()
      .innerText(),
    String(node.port),
  );
  await page.getByRole("row", { name: /127\.0\.0\.1:9 .*offline/ }).waitFor();
  await page.getByText(/Boot complete/).waitFor();
  await page.getByText(new RegExp(`Node ${version} "Barbican" is up`)).waitFor();
  t.true(await page.locator("#reasons").isHidden());
  node.subsystems.set("l2ps", { status: SubsystemStatus.FAILED, error: { message: "<img src=x onerror=alert(1)>" } });
  await page.getByRole("status").filter({ hasText: "degraded" }).waitFor();
  t.is(await page.locator("#subsystems img").count(), 0);
  t.deepEqual(await page.locator("#reasons li").allTextContents(), ["l2ps: <img src=x onerror=alert(1)>"]);
  // The page shows the reason for the status.
  const message = "The database does not respond (ECONNREFUSED).";
  node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message } });
  await page.getByRole("status").filter({ hasText: "failing" }).waitFor();
  t.deepEqual(await page.locator("#reasons li").allTextContents(), [
    `chain: ${message}`,
    "l2ps: <img src=x onerror=alert(1)>",
  ]);
  await inspect(t, page, "status-failing", twoVariants);
  // The reason is visible on a phone, too.
  await page.setViewportSize(phone);
  const box = (await page
    .getByRole("row", { name: /^chain failed/ })
    .getByText(message)
    .boundingBox())!;
  t.true(box.x >= 0 && box.x + box.width <= phone.width && box.height > 0, JSON.stringify(box));
  for (const name of ["chain", "l2ps"] as const) {
    node.subsystems.set(name, { status: SubsystemStatus.READY });
  }
  // An error whose cause is gone is shown no more.
  await page.getByRole("row", { name: /^chain ready/ }).waitFor();
  t.is(await page.getByText(message).count(), 0);
  t.true(
    requests.every((url) => url.startsWith(node.rpcUrl)),
    requests.join(),
  );
  t.deepEqual(errors, []);
});

testBrowser.serial("plots show the last day, with their range and the change", async (t) => {
  t.timeout(300_000, "axe checks each element in each variant of the page");
  const { page, go, errors } = await open(t, "/status");
  // The page is closed while it asks again.
  t.teardown(() => page.unrouteAll({ behavior: "ignoreErrors" }));
  await page.route("**/status/data", (route) => route.fulfill({ json: createHistory(Date.now()) }));
  await page.route("**/chain/head", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), number: 725 } });
  });
  await go();
  await page.getByText(/^The last 1 d/).waitFor();
  const plotTexts = async (name: string) => ({
    now: await page.locator(`#now-${name}`).textContent(),
    change: await page.locator(`#change-${name}`).textContent(),
    label: await page.locator(`#plot-${name}`).getAttribute("aria-label"),
    lines: await page.locator(`#plot-${name} polyline`).count(),
  });
  t.like(await plotTexts("status"), {
    now: "ok",
    change: "ok for 21 h 39 min, failing for 20 min.",
    label: "Status: ok for 21 h 39 min, failing for 20 min.",
  });
  t.like(await plotTexts("pending"), { now: "0", change: "5 fewer than 1 d ago, between 0 and 24." });
  t.like(await plotTexts("online"), { now: "0", change: "3 fewer than 1 d ago, between 0 and 3." });
  t.regex((await plotTexts("online")).label ?? "", /^Verified peers online, 0 to 3, in the last 1 d/);
  // Six blocks in the last two minutes, and in the time since then.
  const rate = Number((await plotTexts("block")).now);
  t.true(rate > 0 && rate <= 3, String(rate));
  // No line is drawn across the time in which the node did not run.
  t.is((await plotTexts("pending")).lines, 2);
  t.is(await page.locator("#plot-pending").locator("..").locator(".scale").textContent(), "240");
  t.regex(String(await page.locator("#plot-pending").locator("..").locator(".axis").textContent()), /^1 d.* agonow$/);
  await inspect(t, page, "status", allVariants);
  t.deepEqual(errors, []);
});

testBrowser.serial(
  "the status page updates after events of the node, and polls if the node rejects streams",
  async (t) => {
    for (const [from, to, refused] of [
      ["withStreams:1e4", "withStreams:36e5", []],
      ["min:1e3", "min:1e3", ["**/health/watch", "**/events?*"]],
    ] as const) {
      const { page, go } = await open(t, "/status", { bypassCSP: true });
      await page.route("**/status", async (route) => {
        const text = await (await route.fetch()).text();
        t.true(text.includes(from));
        await route.fulfill({ body: text.replace(from, to), contentType: "text/html" });
      });
      for (const path of refused) {
        await page.route(path, (route) => route.fulfill({ status: 429, json: { error: "no stream" } }));
      }
      await go();
      for (const status of ["FAILED", "READY", "FAILED", "READY"] as const) {
        node.subsystems.set("l2ps", { status: SubsystemStatus[status], error: { message: "a test" } });
        await page
          .getByRole("status")
          .filter({ hasText: status === "READY" ? "ok" : "degraded" })
          .waitFor();
      }
    }
  },
);

testBrowser.serial("the status page works by keyboard", async (t) => {
  const { page, go } = await open(t, "/status");
  await go();
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  await page.keyboard.press("Tab");
  t.is(await page.evaluate("document.activeElement.textContent"), "Skip to content");
  await page.keyboard.press("Enter");
  t.is(await page.evaluate("document.activeElement.id"), "main");
});

testBrowser.serial("the status page marks its values as stale if the node does not respond", async (t) => {
  const { page, context, go, errors } = await open(t, "/status");
  await go();
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  const stale = page.getByRole("alert").filter({ hasText: /No updates since \d+:\d\d:\d\d/ });
  const colorOf = (id: string) => page.evaluate(`getComputedStyle(document.getElementById("${id}")).color`);
  const good = await colorOf("status");
  await context.setOffline(true);
  await stale.waitFor();
  const [grey, dim] = [await colorOf("status"), await colorOf("summary")];
  t.not(grey, good);
  t.is(grey, dim);
  t.regex(await page.title(), /^no response for /);
  // The values are current again when the node responds.
  await context.setOffline(false);
  await stale.waitFor({ state: "hidden" });
  t.is(await colorOf("status"), good);
  t.regex(await page.title(), /^ok · /);
  await node.stop();
  await page.getByRole("alert").filter({ hasText: "The node does not respond." }).waitFor();
  await inspect(t, page, "status-stale", twoVariants);
  t.deepEqual(
    errors.filter((text) => !/ERR_(CONNECTION_REFUSED|EMPTY|INTERNET_DISCONNECTED|NETWORK)/.test(text)),
    [],
  );
});
