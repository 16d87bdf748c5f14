/** Certificates that commands trust: `--ca`, and what a command says of a certificate that it does not trust. */
import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { createGatehouse } from "gatehouse-client";
import { issueCertificate, localNames } from "../helpers/process/certificates.js";
import { cliOutput, runCli, runCliProcess, startCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

/** Files of the authority and of the node's certificate, and a running node with it. */
let authority: string;
let node: TestNode;
let url: string;

const file = fileTeardown();
test.before(async () => {
  const dir = await temporaryDirectory(file);
  const root = await issueCertificate(dir, "root", { isAuthority: true });
  const { cert, key } = await issueCertificate(dir, "node", { names: localNames, issuer: root });
  authority = root.cert;
  const home = await authorityDirectory(file, testKey(1));
  node = await startTestNode(file, { genesis: "genesis.json", "tls-cert": cert, "tls-key": key }, home);
  url = `https://localhost:${node.port}`;
});

/** Joins the network of the node. Returns the hash of its genesis. */
async function joined(dir: string): Promise<string> {
  const args = ["--ca", authority, "--data-dir", join(dir, "joined"), "--yes", "--json"];
  return (JSON.parse(await cliOutput(["join", url, ...args])) as { genesisHash: string }).genesisHash;
}

/** Returns a command and all of its subcommands, with their names. */
function withSubcommands(command: Command, name: string): [name: string, command: Command][] {
  return [[name, command], ...command.commands.flatMap((sub) => withSubcommands(sub, `${name} ${sub.name()}`.trim()))];
}

test("every command with the URL of a node, or with the peers of a backup, accepts --ca and GATEHOUSE_CA", async (t) => {
  const all = withSubcommands(await createProgram(() => true), "");
  // Commands with the URL of a peer, which the node calls and not the command.
  const passedOn = ["peers add", "peers remove"];
  const calling = all.filter(
    ([name, { options, registeredArguments }]) =>
      !passedOn.includes(name) &&
      (options.some(({ long }) => long === "--node") ||
        registeredArguments.some((argument) => argument.name().startsWith("URL")) ||
        name === "restore"),
  );
  const names = calling.map(([name]) => name);
  for (const known of ["health", "peers list", "join", "light", "doctor", "watch", "storage get"]) {
    t.true(names.includes(known), known);
  }
  for (const [name, { options }] of calling) {
    t.is(options.find(({ long }) => long === "--ca")?.envVar, "GATEHOUSE_CA", name);
  }
});

test("all kinds of connections trust the authorities of --ca, and without it name the flag", async (t) => {
  const dir = await temporaryDirectory(t);
  await cliOutput(["block", "list", "--node", url], { env: { GATEHOUSE_CA: authority } });
  const key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  const at = ["--node", url];
  const created = await cliOutput([
    ...["storage", "create", "notes", ...at, "--ca", authority, "--key", key, "--data", '{"a":1}'],
    ...["--access", "public", "--json"],
  ]);
  const { storageAddress } = JSON.parse(created) as { storageAddress: string };
  const genesisHash = await joined(dir);
  const commands = [
    ["health", ...at],
    ["watch", ...at, "--from-block", "1", "--count", "1"],
    ["storage", "get", storageAddress, "a", ...at],
    ["storage", "get", storageAddress, "a", ...at, "--verify", genesisHash],
  ];
  for (const command of commands) {
    const name = command.slice(0, 2).join(" ");
    const { code, stderr } = await runCli([...command, "--ca", authority]);
    t.is(code, 0, `${name}: ${stderr}`);
    // In a process of its own, which has no open connection.
    const without = await runCliProcess(command);
    t.is(without.code, 3, name);
    t.is(
      without.stderr,
      `gatehouse: The certificate of ${url} is not trusted: the certificate of its issuer is missing; make the server ` +
        "send its intermediate certificates, or give the certificate of its authority with --ca FILE.\n",
      name,
    );
  }
});

test("a light node trusts the authorities of --ca, and logs why it trusts no node without it", async (t) => {
  const dir = await temporaryDirectory(t);
  const genesisHash = await joined(dir);
  const start = (name: string, ...more: readonly string[]) =>
    startCli(t, [
      ...["light", url, "--trust", genesisHash, "--port", "0", "--data-dir", join(dir, name)],
      ...["--max-age", "3600", ...more],
    ]);
  const trusting = await start("one", "--ca", authority);
  t.is((await ask(trusting.port, "/chain/head")).status, 200);
  const other = await start("two");
  t.is((await ask(other.port, "/chain/head")).status, 503);
  t.regex(other.stderr(), /The certificate of https:\S+ is not trusted: .* with --ca FILE\./);
});

test("--ca adds to NODE_EXTRA_CA_CERTS", async (t) => {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await issueCertificate(dir, "other", { names: localNames });
  const other = await startTestNode(t, { "tls-cert": cert, "tls-key": key });
  const env = { NODE_EXTRA_CA_CERTS: authority };
  for (const port of [node.port, other.port]) {
    const { stderr, code } = await runCliProcess(["peers", "--node", `https://localhost:${port}`, "--ca", cert], {
      env,
    });
    t.is(code, 0, stderr);
  }
});

test("a file of --ca that is missing, holds no certificate or a malformed one is named, with code 2", async (t) => {
  const dir = await temporaryDirectory(t);
  const [empty, malformed] = [join(dir, "empty.pem"), join(dir, "malformed.pem")];
  const pem = await readFile(authority, "utf8");
  await writeFile(empty, "none");
  await writeFile(malformed, `${pem}${pem.replace(/\n[^]{8}/, "\nAAAAAAAA")}`);
  for (const [path, message] of [
    [join(dir, "missing.pem"), /^gatehouse: The file \S+missing\.pem cannot be read: ENOENT/],
    [empty, /^gatehouse: --ca \S+empty\.pem has no certificate; give a file of certificates in PEM/],
    [malformed, /^gatehouse: Certificate 2 of 2 in --ca \S+malformed\.pem is malformed \(.+\); copy it again/],
  ] as const) {
    for (const command of [
      ["health", "--node", url],
      ["doctor", "--data-dir", dir],
      ["join", url, "--data-dir", join(dir, "joined")],
    ]) {
      const { code, stderr } = await runCli([...command, "--ca", path]);
      t.is(code, 2, stderr);
      t.regex(stderr, message);
    }
  }
});

test("each kind of certificate that is not trusted has its own reason and remedy", async (t) => {
  const dir = await temporaryDirectory(t);
  const root = await issueCertificate(dir, "root", { isAuthority: true });
  const make = (name: string, contents: Parameters<typeof issueCertificate>[2]) =>
    issueCertificate(dir, name, { names: localNames, ...contents });
  const self = await make("self", {});
  const chained = await make("chained", { issuer: root });
  const chain = join(dir, "chain.pem");
  await writeFile(chain, `${await readFile(chained.cert, "utf8")}${await readFile(root.cert, "utf8")}`);
  for (const [{ cert, key }, ca, message] of [
    [self, undefined, /it is self-signed; if you know that it is the node's own, give it with --ca FILE\.$/],
    [{ cert: chain, key: chained.key }, undefined, /does not know the authority that issued it; give .* --ca FILE\.$/],
    [
      await make("expired", { issuer: root, years: [2020, 2021] }),
      root.cert,
      /it, or a certificate of its issuers, has expired; renew it, or set the clock/,
    ],
    [
      await make("early", { issuer: root, years: [2080, 2090] }),
      root.cert,
      /it is not valid yet; set the clock of this machine if that is wrong, or wait\.$/,
    ],
    [
      await make("named", { issuer: root, names: "DNS:node.example.org" }),
      root.cert,
      /it is for another name \(Host: localhost\. is not in the cert's altnames: DNS:node\.example\.org\); use a name/,
    ],
  ] as const) {
    const { port, stop } = await startTestNode(t, { "tls-cert": cert, "tls-key": key });
    const address = `https://localhost:${port}`;
    const args = ["health", "--node", address, ...(ca === undefined ? [] : ["--ca", ca])];
    const { code, stderr } = await runCli(args);
    t.is(code, 3, stderr);
    t.true(stderr.startsWith(`gatehouse: The certificate of ${address} is not trusted: `), stderr);
    t.regex(stderr.trim(), message);
    await stop();
  }
});

test("the client package says that a certificate is not trusted, and how to trust it", async (t) => {
  const client = createGatehouse(url, { retry: false });
  t.teardown(() => client.close());
  await t.throwsAsync(client.health.getHealth({}), {
    message: /^The certificate of https:\S+ is not trusted: .* with NODE_EXTRA_CA_CERTS=FILE\.$/,
  });
});
