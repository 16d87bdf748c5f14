/** Rules that hold on every plain route, tried on each route of the contract with each edge. */
import { type DescField, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import test from "ava";
import { rangeOf } from "../../../src/rpc/codec/fields.js";
import { type HttpRoute, pathFieldsOf, readHttpRoutes } from "../../../src/rpc/http/http-rule.js";
import { testKey } from "../../helpers/chain/keys.js";
import { storeProgram } from "../../helpers/chain/submit.js";
import { startMember, type TestNode } from "../../helpers/nodes/start-node.js";
import { fileTeardown } from "../../helpers/nodes/teardown.js";
import { contractServices } from "../../helpers/process/contract-files.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";

const alice = testKey(90);
const listFields = ["limit", "page_size", "offset", "page_token"];

interface Route extends HttpRoute {
  readonly rpc: DescMethod;
  /** Fields that the query can set. */
  readonly fields: readonly DescField[];
}

const routes: readonly Route[] = (await contractServices())
  .filter(({ typeName }) => typeName.startsWith("gatehouse.") && !typeName.includes(".testing."))
  .flatMap(({ methods }) => methods)
  .flatMap((rpc) =>
    readHttpRoutes(rpc).map((route) => {
      const inPath = pathFieldsOf(route.template);
      const fields = rpc.input.fields.filter(({ name }) => route.body === undefined && !inPath.includes(name));
      return { ...route, rpc, fields };
    }),
  );
const reads = routes.filter(({ method }) => method === "GET");
const unaryReads = reads.filter(({ isStream }) => !isStream);

const edges = ["compiled", "express"] as const;
let nodes: Readonly<Record<(typeof edges)[number], TestNode>>;
/** Valid value of each field in a path, by its name. */
let known: Readonly<Record<string, string>> = {};

const fileScope = fileTeardown();
test.before(async () => {
  const start = async (edge: string): Promise<TestNode> => {
    const node = await startMember(fileScope, { edge, "tlsnotary-enabled": true });
    const { address } = await storeProgram(fileScope, node, "notes", '{"list":[1,2]}', alice);
    known = { storage_address: address };
    return node;
  };
  nodes = { express: await start("express"), compiled: await start("compiled") };
  const { port } = nodes.compiled;
  const { hash } = await askJson<{ hash: string }>(port, "/chain/head");
  const key = alice.publicKey;
  const one = `0x${"0".repeat(63)}1`;
  known = {
    ...known,
    field: "list",
    index: "0",
    number: "1",
    hash,
    owner: key,
    address: key,
    nullifier_hash: one,
    commitment: one,
  };
});

/** Returns the path of a route, with the required parameters and others. */
function pathOf({ template, fields }: Route, query: readonly string[] = []): string {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(known[name]!));
  const required =
    fields.some(({ name }) => name === "query") && !query.some((each) => /^q(uery)?=/.test(each)) ? ["q=notes"] : [];
  const all = [...required, ...query];
  return `${path}${all.length === 0 ? "" : `?${all.join("&")}`}`;
}

const get = async (path: string, headers: Record<string, string> = {}, port = nodes.compiled.port) =>
  await ask(port, path, { headers });

test("covers the routes of the contract", (t) => {
  t.true(unaryReads.length > 35);
  t.true(reads.length > unaryReads.length);
  t.true(routes.length > reads.length);
});

for (const edge of edges) {
  test(`rejects a malformed percent-encoding in a query, with the edge ${edge}`, async (t) => {
    for (const route of routes) {
      for (const query of ["%", "a=%zz", "%C3", "a=%ED%A0%80"]) {
        const path = pathOf(route, [query]);
        const body = route.method === "POST" ? "{}" : undefined;
        const { status, text } = await ask(nodes[edge].port, path, {
          method: route.method,
          ...(body !== undefined && { body }),
        });
        t.is(status, 400, path);
        t.regex(
          text,
          /"error":"The query string has a malformed percent-encoding\.","errorCode":"INVALID_REQUEST"/,
          path,
        );
      }
    }
  });
}

test("checks the parameters of lists on every list", async (t) => {
  const lists = reads.filter(({ fields }) => fields.some(({ name }) => listFields.includes(name)));
  t.deepEqual(lists.map(({ template }) => template).sort(), [
    "/chain/blocks",
    "/chain/pending",
    "/chain/transactions",
    "/peerlist",
    "/storage-program/owner/{owner}",
    "/storage-program/search",
    "/storage-program/{storage_address}/history",
  ]);
  for (const list of lists) {
    for (const query of [
      "limit=abc",
      "limit=0",
      "pageSize=abc",
      "page_size=-1",
      "offset=1e3",
      "offset=100001",
      "pageToken=x",
      "LIMIT=1",
      "limit[]=1",
      "page__size=1",
    ]) {
      const path = pathOf(list, [query]);
      const { status, text } = await get(path);
      t.is(status, 400, `${path}: ${text}`);
      t.regex(text, /INVALID_REQUEST/);
      const { error } = JSON.parse(text) as { readonly error: string };
      t.true(
        error.toLowerCase().replace("page token", "pagetoken").includes(query.split("=")[0]!.toLowerCase()),
        error,
      );
    }
  }
  for (const route of reads.filter((each) => !lists.includes(each) && !each.isStream)) {
    const [plain, other] = [await get(pathOf(route)), await get(pathOf(route, ["limit=abc"]))];
    t.is(other.status, plain.status, route.template);
  }
});

for (const edge of edges) {
  test(`rejects each malformed number in a query, and names its parameter, with the edge ${edge}`, async (t) => {
    const numbers = reads.flatMap((route) =>
      route.fields.filter((field) => rangeOf(field) !== undefined).map((field) => ({ route, field })),
    );
    t.true(numbers.length >= 13, String(numbers.length));
    for (const { route, field } of numbers) {
      for (const name of new Set([field.jsonName, field.name])) {
        for (const value of ["abc", "1e3", "-1", "1.5", "", "%201", "0x1", "Latest", "99999999999999999999"]) {
          const path = pathOf(route, [`${name}=${value}`]);
          const { status, text } = await ask(nodes[edge].port, path);
          t.is(status, 400, `${path}: ${text}`);
          t.regex(text, new RegExp(`"error":"${name} must be `), path);
          t.regex(text, /"errorCode":"INVALID_REQUEST"/, path);
        }
      }
    }
  });
}

test("has one maximum of offsets", (t) => {
  const offsets = routes.flatMap(({ rpc }) => rpc.input.fields).filter(({ name }) => name === "offset");
  t.true(offsets.length >= 3);
  t.deepEqual(new Set(offsets.map((field) => rangeOf(field)!.max)), new Set([100_000n]));
});

test("reads booleans by one grammar", async (t) => {
  const booleans = unaryReads.flatMap((route) =>
    route.fields.filter(({ scalar }) => scalar === ScalarType.BOOL).map(({ jsonName }) => ({ route, jsonName })),
  );
  t.true(booleans.length >= 4);
  for (const { route, jsonName } of booleans) {
    const texts = async (...spellings: readonly string[]) =>
      new Set(await Promise.all(spellings.map(async (spelling) => (await get(pathOf(route, [spelling]))).text)));
    t.is(
      (await texts(`${jsonName}=true`, `${jsonName}=1`, jsonName, `${jsonName}=`)).size,
      1,
      pathOf(route, [jsonName]),
    );
    t.is((await texts(`${jsonName}=false`, `${jsonName}=0`, "")).size, 1, pathOf(route, [jsonName]));
    for (const wrong of ["TRUE", "yes", "2", "on", "%20true", "null"]) {
      t.is((await get(pathOf(route, [`${jsonName}=${wrong}`]))).status, 400, `${jsonName}=${wrong}`);
    }
  }
});

test("accepts JSON names and proto names in queries, and rejects names that are similar", async (t) => {
  let different = 0;
  for (const route of reads) {
    for (const { name, jsonName } of route.fields) {
      different += Number(name !== jsonName);
      // An invalid value has an error with the name that the request has.
      const similar = [jsonName.toUpperCase(), `${jsonName}[]`, `_${name}`, name.toUpperCase()];
      for (const other of similar.filter((each) => each !== name && each !== jsonName)) {
        const { status, text } = await get(pathOf(route, [`${encodeURIComponent(other)}=1`]));
        t.is(status, 400, `${route.template} ${other}`);
        t.true(text.includes(`There is no parameter \\"${other}\\"; use ${jsonName}.`), text);
      }
      const twice = await get(pathOf(route, [`${name}=`, `${jsonName}=`]));
      t.is(twice.status, 400, `${route.template} ${name}`);
    }
  }
  t.true(different >= 8);
  const first = await askJson<{ blocks: object[]; nextPageToken: string }>(
    nodes.compiled.port,
    "/chain/blocks?page_size=1",
  );
  t.is(first.blocks.length, 1);
  for (const [json, proto] of [
    ["/chain/transactions?blockNumber=0", "/chain/transactions?block_number=0"],
    ["/storage-program/search?q=notes&pageToken=x", "/storage-program/search?query=notes&page_token=x"],
  ] as const) {
    t.is((await get(json)).text, (await get(proto)).text);
  }
  t.regex((await get("/chain/blocks?page_size=x")).text, /page_size must be a whole number from 1 to 200/);
  t.is((await get("/health?_=1700000000000&cb=2&utm_source=x")).status, 200);
});

for (const edge of edges) {
  test(`responds with 412 to a read whose If-Match names another response, with the edge ${edge}`, async (t) => {
    const { port } = nodes[edge];
    for (const route of reads) {
      const path = pathOf(route);
      const wrong = await get(path, { "If-Match": '"x", W/"y"' }, port);
      if (route.isStream) {
        t.is(wrong.status, 412, path);
        continue;
      }
      const plain = await get(path, {}, port);
      const expected = plain.status === 200 ? 412 : plain.status;
      t.is(wrong.status, expected, path);
      t.is((await ask(port, path, { method: "HEAD", headers: { "If-Match": '"x"' } })).status, expected, path);
      t.is((await get(path, { "If-Match": "*" }, port)).status, plain.status, path);
      const { etag } = plain.headers;
      if (etag !== undefined) {
        t.is((await get(path, { "If-Match": `"a", ${etag}` }, port)).status, etag.startsWith("W/") ? 412 : 200, path);
      }
    }
    const { headers } = await get("/openapi.json", {}, port);
    t.is((await get("/openapi.json", { "If-Match": headers.etag! }, port)).status, 200);
    t.is((await get("/openapi.json", { "If-Match": '"x"' }, port)).status, 412);
    const byGet = "/gatehouse.info.v1.InfoService/GetVersion?encoding=json&message={}";
    t.regex((await get(byGet, { "If-Match": '"x"' }, port)).text, /"failed_precondition".*PRECONDITION_FAILED/);
  });
}

test("names the block in every read of data that blocks change, and in no other", async (t) => {
  const services = ["ChainService", "SearchService", "StateService", "StorageService", "ZkService"];
  for (const route of unaryReads) {
    const path = pathOf(route);
    const { headers } = await get(path);
    const isImmutable = headers["cache-control"]?.includes("immutable") === true;
    const isOfBlocks = services.includes(route.rpc.parent.name) && !isImmutable;
    t.is(headers["gatehouse-block"] !== undefined, isOfBlocks, path);
  }
});
