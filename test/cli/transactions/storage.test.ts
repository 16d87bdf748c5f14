import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testKey } from "../../helpers/chain/keys.js";
import { startWithUsers } from "../../helpers/nodes/cli-users.js";
import { runCli } from "../../helpers/nodes/run-cli.js";

test("storage commands create, change, read and delete a program", async (t) => {
  const { alice, nobody } = await startWithUsers(t);
  const created = await alice(
    "storage",
    "create",
    "notes",
    "--access",
    "public",
    "--data",
    '{"title":"a","n":1.0,"tags":[]}',
  );
  t.is(created.code, 0, created.stderr);
  const [address = "", second] = created.stdout.split("\n");
  t.regex(address, /^stor-[0-9a-f]{40}$/);
  t.regex(second!, /^transaction 0x[0-9a-f]{64} in block 1$/);

  for (const args of [
    ["set", address, "title", '"b"'],
    ["append", address, "tags", "[1.50]"],
    ["append", address, "tags", "2"],
    ["set", address, "tags", "null", "--index", "1"],
    ["delete", address, "n"],
  ]) {
    const { code, stderr } = await alice("storage", ...args);
    t.is(code, 0, stderr);
  }
  t.is((await nobody("storage", "get", address)).stdout, '{"title":"b","tags":[[1.50],null]}\n');
  t.is((await nobody("storage", "get", address, "tags")).stdout, "[[1.50],null]\n");
  t.regex((await nobody("storage", "search", "NOTE")).stdout, new RegExp(`${address}  notes +json`));
  t.regex((await nobody("storage", "list", testKey(2).publicKey, "--limit", "1")).stdout, /notes/);
  t.is((await nobody("storage", "list", testKey(3).publicKey)).stdout, "There are no programs that you may read.\n");

  t.is((await alice("storage", "delete", address, "tags", "--index", "0")).code, 0);
  t.is((await alice("storage", "delete", address)).code, 0);
  const deleted = await nobody("storage", "get", address);
  t.is(deleted.code, 1);
  t.regex(
    deleted.stderr,
    /^gatehouse: The node rejected the request: There is no storage program at this address .* \(NOT_FOUND\)\n$/,
  );
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
  const { stdout } = await alice("storage", "create", "diary", "--data", '{"pin":1}');
  const [address] = stdout.split("\n");
  const { stdout: line } = await alice("identity", "headers");
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
  const read = await alice("storage", "get", address!, "--network", other);
  t.is(read.code, 1);
  t.regex(read.stderr, /INVALID_SIGNATURE/);
  t.is((await alice("storage", "get", address!)).stdout, '{"pin":1}\n');
  const malformed = await alice("identity", "headers", "--network", "mainnet");
  t.is(malformed.code, 2);
  t.regex(malformed.stderr, /--network must be 0x and 64 lower-case hex digits, not "mainnet"/);
});

test("reads succeed on a node with --identity-form network", async (t) => {
  const { alice } = await startWithUsers(t, { "identity-form": "network" });
  const [address = ""] = (await alice("storage", "create", "diary", "--data", '{"pin":1}')).stdout.split("\n");
  t.is((await alice("storage", "get", address)).stdout, '{"pin":1}\n');
});

test("binary and JSON files are stored unchanged", async (t) => {
  const { dir, alice } = await startWithUsers(t);
  await writeFile(join(dir, "bytes"), Buffer.from([0, 255, 10]));
  await writeFile(join(dir, "document.json"), '{ "a": 1.0 }\n');
  const binary = await alice("storage", "create", "b", "--binary", join(dir, "bytes"));
  t.is((await alice("storage", "get", binary.stdout.split("\n")[0]!)).stdout, '"AP8K"\n');
  const file = await alice("storage", "create", "f", "--file", join(dir, "document.json"));
  t.is((await alice("storage", "get", file.stdout.split("\n")[0]!)).stdout, '{ "a": 1.0 }\n\n');
});

test("a document of 1 MiB can be created and read", async (t) => {
  const { dir, alice } = await startWithUsers(t);
  const text = `{"a":"${"x".repeat(1024 * 1024 - 8)}"}`;
  await writeFile(join(dir, "large.json"), text);
  const { stdout, stderr } = await alice("storage", "create", "large", "--file", join(dir, "large.json"));
  const [address = ""] = stdout.split("\n");
  t.is((await alice("storage", "get", address)).stdout, `${text}\n`, stderr);
});

test("invalid flags and arguments end with code 2 and a remedy", async (t) => {
  const { alice, nobody } = await startWithUsers(t);
  const address = `stor-${"0".repeat(40)}`;
  for (const [run, args, message] of [
    [nobody, ["create", "a"], /--key FILE is required to sign; create a key with: gatehouse keygen/],
    [alice, ["set", address, "a", "text"], /VALUE must be JSON, not text; put a string in quotes: '"text"'/],
    [alice, ["write", address], /One of --data, --file and --binary is required/],
    [alice, ["create", "a", "--data", "1", "--file", "x"], /--data and --file exclude each other/],
    [alice, ["create", "a", "--data", "1", "--binary", "x"], /--data and --binary exclude each other/],
    [alice, ["create", "a", "--allow", "0x1"], /require --access/],
    [alice, ["create", "a", "--access", "restricted", "--group", "team"], /--group must be NAME:read,write:KEY,KEY/],
    [alice, ["create", "a", "--file", "/nowhere"], /The file \/nowhere cannot be read/],
    [alice, ["delete", address, "--index", "1"], /--index requires a FIELD/],
    [alice, ["set", address, "a", "1", "--index", "-1"], /whole number from 0/],
  ] as const) {
    const { code, stderr } = await run("storage", ...args);
    t.is(code, 2, args.join(" "));
    t.regex(stderr, message);
  }
});
