import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testKey } from "../../helpers/chain/keys.js";
import { startWithUsers } from "../../helpers/nodes/cli-users.js";
import { runCli } from "../../helpers/nodes/run-cli.js";

test("a program is made, changed and read from the command line", async (t) => {
  const { alice, nobody } = await startWithUsers(t);
  const made = await alice(
    "storage",
    "create",
    "notes",
    "--access",
    "public",
    "--data",
    '{"title":"a","n":1.0,"tags":[]}',
  );
  t.is(made.code, 0, made.stderr);
  const [address = "", second] = made.stdout.split("\n");
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
  const gone = await nobody("storage", "get", address);
  t.is(gone.code, 1);
  t.regex(
    gone.stderr,
    /^gatehouse: The node rejected the request: There is no storage program at this address .* \(NOT_FOUND\)\n$/,
  );
});

test("a private program is read with its key, and shared by its rule", async (t) => {
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
  const refused = await bob("storage", "set", address, "pin", "2");
  t.is(refused.code, 1);
  t.regex(refused.stderr, /is rejected: The sender may not change this storage program\./);
  const [hash = ""] = /0x[0-9a-f]{64}/.exec(refused.stderr) ?? [];
  t.is((await nobody("tx", "status", hash)).stdout, "rejected: The sender may not change this storage program.\n");
});

test("the headers for curl prove the identity, on one network", async (t) => {
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
  // For another network it needs no node, and this one refuses it.
  const other = `0x${"7".repeat(64)}`;
  const pinned = await runCli(["identity", "headers", "--json", "--network", other, "--node", "http://127.0.0.1:9"], {
    env: { GATEHOUSE_KEY: join(dir, "alice.key") },
  });
  const refused = await fetch(url, { headers: JSON.parse(pinned.stdout) as Record<string, string> });
  t.is(refused.status, 401);
  t.regex(await refused.text(), /is signed for the network 0x7+, and this node belongs to 0x/);
  const read = await alice("storage", "get", address!, "--network", other);
  t.is(read.code, 1);
  t.regex(read.stderr, /INVALID_SIGNATURE/);
  t.is((await alice("storage", "get", address!)).stdout, '{"pin":1}\n');
  const none = await alice("identity", "headers", "--network", "mainnet");
  t.is(none.code, 2);
  t.regex(none.stderr, /--network must be 0x and 64 lower-case hex digits, not "mainnet"/);
});

test("commands that read do so at a node that insists on its network", async (t) => {
  const { alice } = await startWithUsers(t, { "identity-form": "network" });
  const [address = ""] = (await alice("storage", "create", "diary", "--data", '{"pin":1}')).stdout.split("\n");
  t.is((await alice("storage", "get", address)).stdout, '{"pin":1}\n');
});

test("bytes and files are taken as they are", async (t) => {
  const { dir, alice } = await startWithUsers(t);
  await writeFile(join(dir, "bytes"), Buffer.from([0, 255, 10]));
  await writeFile(join(dir, "document.json"), '{ "a": 1.0 }\n');
  const binary = await alice("storage", "create", "b", "--binary", join(dir, "bytes"));
  t.is((await alice("storage", "get", binary.stdout.split("\n")[0]!)).stdout, '"AP8K"\n');
  const file = await alice("storage", "create", "f", "--file", join(dir, "document.json"));
  t.is((await alice("storage", "get", file.stdout.split("\n")[0]!)).stdout, '{ "a": 1.0 }\n\n');
});

test("a document of 1 MiB gets in and out", async (t) => {
  const { dir, alice } = await startWithUsers(t);
  const text = `{"a":"${"x".repeat(1024 * 1024 - 8)}"}`;
  await writeFile(join(dir, "large.json"), text);
  const { stdout, stderr } = await alice("storage", "create", "large", "--file", join(dir, "large.json"));
  const [address = ""] = stdout.split("\n");
  t.is((await alice("storage", "get", address)).stdout, `${text}\n`, stderr);
});

test("what is wrong on the command line is code 2, with a remedy", async (t) => {
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
