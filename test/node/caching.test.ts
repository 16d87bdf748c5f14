/** Cache headers and conditional requests of a real node, with curl and Connect clients. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode, StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { callerOf } from "../helpers/process/caller.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/process/programs.js";
import { authorityDirectory, startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { commit, createPublic, signTransaction, signZk } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const alice = testKey(40);
const storageAddress = programAddress(alice.publicKey, "a", 1n, "");
const path = `/storage-program/${storageAddress}`;

type Signed = ReturnType<typeof signTransaction>;

/** Submits a transaction, and returns its hash once a block includes it. */
async function include({ port, rpcUrl }: TestNode, transaction: Signed): Promise<string> {
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: rpcUrl }));
  const { hash } = await client.submitTransaction({ transaction });
  await until(async () => (await askJson(port, `/chain/transactions/${hash}`))["status"] === "included");
  return hash;
}

const createProgram = (): Signed => signTransaction(alice, 1, createPublic("a", '{"n":1}'));
const setMode = (nonce: number, mode: AccessMode): Signed =>
  signTransaction(alice, nonce, { case: "updateAccess", value: { storageAddress, access: { mode } } });

interface CurlResponse {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

async function curl(...args: readonly string[]): Promise<CurlResponse> {
  const { stdout } = await run("curl", ["-sS", "-i", ...args]);
  const [head = "", ...body] = stdout.split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = new Map(
    lines.map((line) => [line.split(":")[0]!.toLowerCase(), line.slice(line.indexOf(":") + 2)] as const),
  );
  return { status: Number(first.split(" ")[1]), headers, body: body.join("\r\n\r\n") };
}

const testCurl = testUnless(whyNot("curl", "--version"));

for (const [http, flag] of [
  ["HTTP/1.1", "--http1.1"],
  ["HTTP/2", "--http2-prior-knowledge"],
] as const) {
  testCurl(`${http}: a conditional read gets 304 for a current tag, and access is checked first`, async (t) => {
    const node = await startMember(t);
    const url = `http://127.0.0.1:${node.port}${path}`;
    const again = (etag: string, ...more: readonly string[]) =>
      curl(flag, "-H", `If-None-Match: ${etag}`, ...more, url);
    const missing = await curl(flag, url);
    t.is(missing.status, 404);
    t.is(missing.headers.get("cache-control"), "private, no-store");

    await include(node, createProgram());
    const first = await curl(flag, url);
    t.is(first.status, 200);
    t.is(first.headers.get("cache-control"), "public, no-cache");
    const etag = first.headers.get("etag")!;
    // From the second time on, the response comes from the cache.
    for (let i = 0; i < 3; i++) {
      const unchanged = await again(etag);
      t.is(unchanged.status, 304);
      t.is(unchanged.body, "");
      t.is(unchanged.headers.get("etag"), etag);
      t.is(unchanged.headers.get("cache-control"), "public, no-cache");
      t.is(unchanged.headers.get("gatehouse-block"), first.headers.get("gatehouse-block"));
    }
    t.is((await again('"another"')).status, 200);
    t.is((await again(`${etag}, broken`)).status, 200);
    t.is((await again(etag, "-I")).status, 304);
    const head = await curl(flag, "-I", url);
    t.is(head.headers.get("etag"), etag);
    t.is(head.headers.get("content-length"), first.headers.get("content-length"));

    const signed = Object.entries(callerOf(alice).headers()).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    for (const tag of [etag, "*"]) {
      const own = await again(tag, ...signed);
      t.is(own.status, 200);
      t.is(own.headers.get("cache-control"), "private, no-store");
      t.is(own.headers.get("etag"), undefined);
      t.is(own.body, first.body);
    }

    await include(node, setMode(2, AccessMode.OWNER));
    for (const tag of [etag, "*"]) {
      const denied = await again(tag);
      t.is(denied.status, 404);
      t.is(denied.headers.get("cache-control"), "private, no-store");
      t.is(denied.headers.get("etag"), undefined);
    }
    await include(node, setMode(3, AccessMode.PUBLIC));
    const later = await again(etag);
    t.is(later.status, 200);
    t.not(later.headers.get("etag"), etag);
  });
}

test("cached lists, searches and roots are up to date after each block", async (t) => {
  const node = await startMember(t);
  const key = alice.publicKey.slice(2);
  const paths = [
    `/storage-program/owner/${key}`,
    "/storage-program/search?q=made",
    "/storage-program/search?q=made%202&exact=true",
  ];
  const names = async (url: string, headers = {}): Promise<readonly string[]> => {
    const { programs } = JSON.parse((await ask(node.port, url, { headers })).text) as {
      readonly programs: readonly { readonly programName: string }[];
    };
    return programs.map(({ programName }) => programName);
  };
  /** Reads often enough to hit the cache. `own` lists the programs that the owner sees. */
  const expectNames = async (url: string, all: readonly string[], own = all): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      t.deepEqual(await names(url, callerOf(alice).headers()), own, url);
      t.deepEqual(await names(url), all, url);
    }
  };
  const readRoot = async () => await askJson<{ rootHash: string; leafCount: number }>(node.port, "/zk/merkle-root");
  for (const url of paths) {
    await expectNames(url, []);
  }
  const before = await Promise.all([readRoot(), readRoot(), readRoot()]);
  await include(node, signTransaction(alice, 1, createPublic("made 1", "{}")));
  await include(node, signTransaction(alice, 2, createPublic("made 2", "{}")));
  await expectNames(paths[0]!, ["made 2", "made 1"]);
  await expectNames(paths[1]!, ["made 2", "made 1"]);
  await expectNames(paths[2]!, ["made 2"]);
  const made2 = programAddress(alice.publicKey, "made 2", 2n, "");
  const hidden = { storageAddress: made2, access: { mode: AccessMode.OWNER } };
  await include(node, signTransaction(alice, 3, { case: "updateAccess", value: hidden }));
  await expectNames(paths[0]!, ["made 1"], ["made 2", "made 1"]);
  await expectNames(paths[2]!, [], ["made 2"]);
  await include(node, signZk(alice, 4, commit(`0x${"3".padStart(64, "0")}`)));
  for (let i = 0; i < 3; i++) {
    const { rootHash, leafCount } = await readRoot();
    t.is(leafCount, before[0].leafCount + 1);
    t.not(rootHash, before[0].rootHash);
  }
});

test("responses by hash are immutable unless an access rule applies", async (t) => {
  const node = await startMember(t);
  const program = await include(node, createProgram());
  const commitment = await include(node, signZk(alice, 2, commit(`0x${"1".padStart(64, "0")}`)));
  const cacheControl = async (url: string) => (await ask(node.port, url)).headers["cache-control"];
  const immutable = "public, max-age=31536000, immutable";
  const blocks = await Promise.all(
    [1, 2].map(async (number) => (await askJson<{ hash: string }>(node.port, `/chain/blocks/${number}`)).hash),
  );
  t.is(await cacheControl(`/chain/blocks/hash/${blocks[0]}`), "public, no-cache");
  t.is(await cacheControl(`/chain/blocks/hash/${blocks[1]}`), immutable);
  t.is(await cacheControl("/chain/blocks/2"), "public, no-cache");
  t.is(await cacheControl(`/chain/transactions/${program}`), immutable);
  t.is(await cacheControl(`/chain/transactions/${program}?withBody=true`), "public, no-cache");
  t.is(await cacheControl(`/chain/transactions/${commitment}?withBody=true`), immutable);

  const block = await ask(node.port, `/chain/blocks/hash/${blocks[1]}`);
  t.is(block.headers["gatehouse-block"], undefined);
  t.is(block.headers["ratelimit"], undefined);
  const headers = { "if-none-match": block.headers.etag! };
  t.is((await ask(node.port, `/chain/blocks/hash/${blocks[1]}`, { headers })).status, 304);
  const own = await ask(node.port, `/chain/blocks/hash/${blocks[1]}`, { headers: callerOf(alice).headers() });
  t.is(own.headers["cache-control"], "private, no-store");
});

test("tags stay the same after a restart, and differ for other blocks with the same numbers", async (t) => {
  const start = (dir: string) => startTestNode(t, { genesis: "genesis.json" }, dir);
  const tagOf = async ({ port }: TestNode) => (await ask(port, "/zk/merkle-root")).headers.etag!;
  const dir = await authorityDirectory(t, testKey(1));
  const first = await start(dir);
  await include(first, createProgram());
  const tag = await tagOf(first);
  await first.stop();
  const backup = join(await temporaryDirectory(t), "backup");
  await cp(dir, backup, { recursive: true });

  const second = await start(dir);
  t.is(await tagOf(second), tag);
  await include(second, setMode(2, AccessMode.OWNER));
  const lost = await tagOf(second);
  await second.stop();

  const restored = await start(backup);
  t.is(await tagOf(restored), tag);
  await include(restored, signZk(alice, 2, commit(`0x${"2".padStart(64, "0")}`)));
  t.is((await askJson<{ number: number }>(restored.port, "/chain/head")).number, 2);
  t.not(await tagOf(restored), lost);
  const { status } = await ask(restored.port, "/zk/merkle-root", { headers: { "if-none-match": lost } });
  t.is(status, 200);
});

test("a Connect client gets cache headers for GET, and none for POST", async (t) => {
  const node = await startMember(t);
  await include(node, createProgram());
  for (const httpVersion of ["1.1", "2"] as const) {
    const cacheHeaders = async (useHttpGet: boolean, headers = {}) => {
      const transport = createConnectTransport({ baseUrl: node.rpcUrl, httpVersion, useHttpGet });
      let received = new Headers();
      const onHeader = (headers: Headers): void => void (received = headers);
      const { success } = await createClient(StorageService, transport).getProgram(
        { storageAddress },
        { headers, onHeader },
      );
      t.true(success);
      return [received.get("cache-control"), received.get("etag")?.slice(0, 3) ?? null];
    };
    t.deepEqual(await cacheHeaders(true), ["public, no-cache", 'W/"']);
    t.deepEqual(await cacheHeaders(true, callerOf(alice).headers()), ["private, no-store", null]);
    t.deepEqual(await cacheHeaders(false), [null, null]);
  }
  const rpc = (message: string, more = "") =>
    ask(
      node.port,
      `/gatehouse.storage.v1.StorageService/GetProgram?connect=v1&encoding=json&message=${encodeURIComponent(message)}${more}`,
    );
  const right = JSON.stringify({ storageAddress });
  const { etag } = (await rpc(right)).headers;
  t.truthy(etag);
  for (const [message, more, status] of [
    ["{}", "", 400],
    [JSON.stringify({ storageAddress: `stor-${"0".repeat(40)}` }), "", 404],
    [right, "&compression=gzip", 400],
  ] as const) {
    const answer = await rpc(message, more);
    t.is(answer.status, status, more);
    t.is(answer.headers["cache-control"], "private, no-store", more);
    t.is(answer.headers.etag, undefined);
  }
});
