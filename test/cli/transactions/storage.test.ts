import test from "ava";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createProgram } from "../../../client/src/operations.js";
import { testKey } from "../../helpers/chain/keys.js";
import { type CliUser, startWithUsers } from "../../helpers/nodes/cli-users.js";
import { runCli } from "../../helpers/nodes/run-cli.js";

/** Creates a program. Returns its address. */
const create = async (as: CliUser, name: string, ...flags: readonly string[]): Promise<string> =>
  (await as.ok("storage", "create", name, ...flags)).split("\n")[0]!;

test("storage commands create, change, read and delete a program", async (t) => {
  const { alice, nobody } = await startWithUsers(t);
  const data = '{"title":"a","n":1.0,"tags":[]}';
  const created = await alice.ok("storage", "create", "notes", "--access", "public", "--data", data);
  t.regex(created, /^stor-[0-9a-f]{40}\ntransaction 0x[0-9a-f]{64} in block 1\n$/);
  const [address = ""] = created.split("\n");
  for (const args of [
    ["set", address, "title", '"b"'],
    ["append", address, "tags", "[1.50]"],
    ["append", address, "tags", "2"],
    ["set", address, "tags", "null", "--index", "1"],
    ["delete", address, "n"],
  ]) {
    await alice.ok("storage", ...args);
  }
  t.is(await nobody.ok("storage", "get", address), '{"title":"b","tags":[[1.50],null]}\n');
  t.is(await nobody.ok("storage", "get", address, "tags"), "[[1.50],null]\n");
  t.regex(await nobody.ok("storage", "search", "NOTE"), new RegExp(`${address}  notes +json`));
  t.regex(await nobody.ok("storage", "list", testKey(2).publicKey, "--limit", "1"), /notes/);
  t.is(await nobody.ok("storage", "list", testKey(3).publicKey), "There are no programs that you may read.\n");

  await alice.ok("storage", "delete", address, "tags", "--index", "0");
  await alice.ok("storage", "delete", address);
  const { code, stderr } = await nobody("storage", "get", address);
  t.is(code, 1);
  t.regex(stderr, /rejected the request: There is no storage program at this address .* \(NOT_FOUND\)\n$/);
});

test("reads fields whose names are dots, and reports a proxy that resolves them", async (t) => {
  const { node, alice, nobody } = await startWithUsers(t);
  const fields = { ".": 1, "..": 2, "...": 3, "a/b": 4, "a/../b": 5, "%2e": 6, "": 7, field: 8, all: 9 };
  const address = await create(alice, "dots", "--access", "public", "--data", JSON.stringify(fields));
  for (const [name, value] of Object.entries(fields)) {
    t.is(await nobody.ok("storage", "get", address, name), `${value}\n`, name);
  }
  t.is((await nobody("storage", "get", address, "../field/all")).code, 1);
  t.regex((await nobody("tx", "status", "..")).stderr, /hash must be/);
  t.regex((await nobody("storage", "list", "..")).stderr, /owner must be/);

  // As a proxy that resolves the segments of a path.
  const proxy = createServer((request, response) => {
    void fetch(new URL(request.url!, node.rpcUrl)).then(async (answer) =>
      response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text()),
    );
  }).listen(0, "127.0.0.1");
  t.teardown(() => proxy.close());
  await once(proxy, "listening");
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  t.is(await nobody.ok("storage", "get", address, "all", "--node", url), "9\n");
  for (const name of [".", ".."]) {
    const { code, stdout, stderr } = await nobody("storage", "get", address, name, "--node", url);
    t.is(code, 1);
    t.is(stdout, "");
    t.regex(stderr, /is not about the field "\.+": a proxy before the node changes paths/);
  }
});

test("no group is lost", async (t) => {
  const { alice } = await startWithUsers(t);
  const key = testKey(3).publicKey;
  const group = (...names: readonly string[]) => names.flatMap((name) => ["--group", `${name}:read:${key}`]);
  for (const [names, error] of [
    [["__proto__"], /must not be named __proto__; choose another name/],
    [["team", "team"], /names "team" twice/],
  ] as const) {
    const { code, stderr } = await alice("storage", "create", "x", "--access", "restricted", ...group(...names));
    t.is(code, 2);
    t.regex(stderr, error);
  }
  for (const groups of [JSON.parse(`{"__proto__":{"members":[],"permissions":[]}}`), { __proto__: { members: [] } }]) {
    t.throws(() => createProgram({ name: "x", access: { mode: "public", groups: groups as never } }), {
      instanceOf: TypeError,
      message: "A group of an access rule must not be named __proto__.",
    });
  }
});

test("only the owner reads a private program, until the access rule permits others", async (t) => {
  const { alice, bob, nobody } = await startWithUsers(t);
  const { stdout } = await alice("storage", "create", "diary", "--data", '{"pin":1}', "--json");
  const { storageAddress: address, status } = JSON.parse(stdout) as { storageAddress: string; status: string };
  t.is(status, "included");
  t.is((await alice("storage", "get", address, "pin")).stdout, "1\n");
  t.is((await bob("storage", "get", address, "pin")).code, 1);
  t.is((await nobody("storage", "get", address, "pin")).code, 1);

  const share = ["--access", "restricted", "--group", `readers:read:${testKey(3).publicKey}`];
  t.is((await alice("storage", "access", address, ...share)).code, 0);
  t.is((await bob("storage", "get", address, "pin")).stdout, "1\n");
  const rejected = await bob("storage", "set", address, "pin", "2");
  t.is(rejected.code, 1);
  t.regex(rejected.stderr, /is rejected: The sender may not change this storage program\./);
  const [hash = ""] = /0x[0-9a-f]{64}/.exec(rejected.stderr) ?? [];
  t.is((await nobody("tx", "status", hash)).stdout, "rejected: The sender may not change this storage program.\n");
});

test("identity headers prove an identity on one network only", async (t) => {
  const { alice, node, dir } = await startWithUsers(t);
  const address = await create(alice, "diary", "--data", '{"pin":1}');
  const line = await alice.ok("identity", "headers");
  const headers = [...line.matchAll(/-H '([a-z]+): ([^']*)'/g)].map(([, name, value]) => [name!, value!] as const);
  t.deepEqual(
    headers.map(([name]) => name),
    ["identity", "timestamp", "network", "signature"],
  );
  const url = `${node.rpcUrl}/storage-program/${address}/all`;
  t.is((await fetch(url, { headers: Object.fromEntries(headers) })).status, 200);
  // With --network the command needs no node. A node of another network rejects the headers.
  const other = `0x${"7".repeat(64)}`;
  const pinned = await runCli(["identity", "headers", "--json", "--network", other, "--node", "http://127.0.0.1:9"], {
    env: { GATEHOUSE_KEY: join(dir, "alice.key") },
  });
  const rejected = await fetch(url, { headers: JSON.parse(pinned.stdout) as Record<string, string> });
  t.is(rejected.status, 401);
  t.regex(await rejected.text(), /is signed for the network 0x7+, and this node belongs to 0x/);
  const read = await alice("storage", "get", address, "--network", other);
  t.is(read.code, 1);
  t.regex(read.stderr, /INVALID_SIGNATURE/);
  t.is(await alice.ok("storage", "get", address), '{"pin":1}\n');
});

test("reads succeed on a node with --identity-form network", async (t) => {
  const { alice } = await startWithUsers(t, { "identity-form": "network" });
  const address = await create(alice, "diary", "--data", '{"pin":1}');
  t.is(await alice.ok("storage", "get", address), '{"pin":1}\n');
});

test("binary and JSON files are stored unchanged, up to 1 MiB", async (t) => {
  const { dir, alice } = await startWithUsers(t);
  const file = join(dir, "content");
  const large = `{"a":"${"x".repeat(1024 * 1024 - 8)}"}`;
  for (const [flag, content, shown] of [
    ["--binary", Buffer.from([0, 255, 10]), '"AP8K"\n'],
    ["--file", '{ "a": 1.0 }\n', '{ "a": 1.0 }\n\n'],
    ["--file", large, `${large}\n`],
  ] as const) {
    await writeFile(file, content);
    t.is(await alice.ok("storage", "get", await create(alice, "a", flag, file)), shown);
  }
});
