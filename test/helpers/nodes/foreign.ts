/** Clients in other languages: how tests start them, and the cases that all of them pass. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile, cp } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import type { ExecutionContext } from "ava";
import type { ConditionalTest } from "./when.js";
import { ControlService } from "../../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { openDatabase } from "../../../src/db/open.js";
import { makeCertificate, sampleGenesis, startMember, startTestNode, type TestNode } from "./start-node.js";
import { testKey, writeKey } from "../chain/keys.js";
import { ask, askJson } from "../wire/plain-client.js";
import { cleanEnvironment, type CliResult } from "./run-cli.js";
import { writeAs } from "../chain/submit.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { createPublic, type Operation } from "../chain/transactions.js";
import { until } from "./until.js";
import { version } from "../../../src/base/version.js";

/** A running program. It is killed at the end of its test. */
export interface ForeignProgram {
  /** Resolves once stdout contains this text; rejects if the program ends before. */
  prints(text: string): Promise<void>;
  readonly ended: Promise<CliResult>;
  /** Sends SIGKILL. */
  kill(): void;
}

/** Starts a program. A proxy in the environment is not used for local addresses. */
export function startProgram(t: Teardown, command: string, args: readonly string[]): ForeignProgram {
  const child = spawn(command, args, { env: cleanEnvironment({ no_grpc_proxy: "127.0.0.1,localhost" }) });
  t.teardown(() => child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return {
    ended,
    kill: () => void child.kill("SIGKILL"),
    async prints(text) {
      const hasEnded = ended.then(() => true);
      while (!stdout.includes(text)) {
        if (await Promise.race([hasEnded, once(child.stdout, "data").then(() => false)])) {
          throw new Error(`It ended without ${JSON.stringify(text)}: ${stdout}${stderr}`);
        }
      }
    },
  };
}

/** Starts a program of the examples with these arguments. */
type Run = (t: Teardown, ...args: readonly string[]) => ForeignProgram;
type Cases = Readonly<Record<string, (t: ExecutionContext) => Promise<void>>>;

/** gRPC codes as a client prints them. */
type Codes = Readonly<Record<"unavailable" | "resourceExhausted", string>>;
const numbers: Codes = { unavailable: "14", resourceExhausted: "8" };

/**
 * Declares the cases of programs in a language: a reading, a writing and a watching client, and one that checks the test
 * vectors.
 *
 * @param codes by default the numbers.
 */
export function testExamples(
  test: ConditionalTest,
  language: string,
  programs: readonly (keyof typeof casesOf)[],
  run: (t: Teardown, program: string, ...args: readonly string[]) => ForeignProgram,
  codes: Codes = numbers,
): void {
  for (const program of programs) {
    const cases = casesOf[program]((t, ...args) => run(t, program, ...args), codes);
    Object.entries(cases).forEach(([title, implementation]) => test(`the ${language} client ${title}`, implementation));
  }
}

const casesOf = { client: clientCases, write: writerCases, watch: watcherCases, vectors: vectorCases };

function clientCases(run: Run, codes: Codes): Cases {
  return {
    async "prints version, health and latest block"(t) {
      const { port } = await startMember(t);
      const { code, stdout, stderr } = await run(t, `127.0.0.1:${port}`).ended;
      t.is(code, 0, stdout + stderr);
      t.regex(stdout, new RegExp(`^version {3}${version}$`, "m"));
      t.regex(stdout, /^health {4}ok, accepting/m);
      t.regex(stdout, new RegExp(`^ {10}rpc ready, port ${port}$`, "m"));
      t.regex(stdout, /^ {10}signaling skipped$/m);
      const { hash } = await askJson<{ hash: string }>(port, "/chain/head");
      t.regex(stdout, new RegExp(`^head {6}block 0, ${hash}`, "m"));
    },

    async "prints health and reason of a dormant node without a genesis"(t) {
      const { port } = await startTestNode(t);
      const { code, stdout } = await run(t, `127.0.0.1:${port}`).ended;
      t.is(code, 1);
      t.regex(stdout, /^health {4}dormant, not accepting/m);
      t.regex(stdout, /^head {6}failed: .*no genesis block yet/m);
      t.true(
        stdout.includes(`\n  code    ${codes.unavailable}\n  reason  STATE_NOT_READY (domain gatehouse)\n`),
        stdout,
      );
    },

    async "prints the delay before a retry"(t) {
      const { port } = await startMember(t, { "rate-limit": "1", "rate-limit-exempt": "" });
      await run(t, `127.0.0.1:${port}`).ended;
      const { code, stdout } = await run(t, `127.0.0.1:${port}`).ended;
      t.is(code, 1);
      // Probes are never limited.
      t.regex(stdout, /^health {4}ok/m);
      const reason =
        /^head {6}failed: Too many requests.*\n {2}code {4}(\w+)\n {2}reason {2}RATE_LIMITED \(domain gatehouse\)/m;
      t.is(reason.exec(stdout)?.[1], codes.resourceExhausted, stdout);
      t.regex(stdout, /^ {2}retry {3}in [1-9]\d* s$/m);
    },

    async "prints no reason if no node responds"(t) {
      const node = await startTestNode(t);
      await node.stop();
      const { code, stdout } = await run(t, `127.0.0.1:${node.port}`).ended;
      t.is(code, 1);
      t.true(stdout.includes(`\n  code    ${codes.unavailable}\n`), stdout);
      t.notRegex(stdout, /reason/);
    },

    async "watches health, and exits after the requested number of changes"(t) {
      const node = await startMember(t);
      const control = createClient(ControlService, node.control);
      const watcher = run(t, `127.0.0.1:${node.port}`, "--watch", "2");
      await watcher.prints("\nwatch     ok, accepting\n");
      await control.reportSubsystem({ name: "signaling", status: SubsystemStatus.READY, port: 3005, leaseS: 60 });
      await watcher.prints("\nchange 1  ok, accepting\n          signaling ready, port 3005\n");
      const failed = { name: "l2ps", status: SubsystemStatus.FAILED, error: "out of paper", leaseS: 60 };
      await control.reportSubsystem(failed);
      const { code, stdout, stderr } = await watcher.ended;
      t.is(code, 0, stderr);
      const end = "\nchange 2  degraded, accepting\n          l2ps failed, last error: out of paper\n";
      t.true(stdout.endsWith(end), stdout);
    },

    async "exits if the stream ends because the node shuts down"(t) {
      const node = await startMember(t);
      const watcher = run(t, `127.0.0.1:${node.port}`, "--watch", "1000");
      await watcher.prints("\nwatch     ok");
      await node.stop();
      const { code, stdout, stderr } = await watcher.ended;
      t.is(code, 0, stderr);
      t.regex(stdout, /\nwatch {5}the node has ended the stream; it shuts down\n$/);
    },

    async "connects over TLS with a trusted certificate"(t) {
      const dir = await temporaryDirectory(t);
      const { cert, key } = await makeCertificate(dir);
      const { port } = await startTestNode(t, { genesis: sampleGenesis, "tls-cert": cert, "tls-key": key });
      const trusted = await run(t, `127.0.0.1:${port}`, "--ca", cert).ended;
      t.is(trusted.code, 0, trusted.stdout + trusted.stderr);
      t.regex(trusted.stdout, new RegExp(`^version {3}${version}$`, "m"));
      const plain = await run(t, `127.0.0.1:${port}`).ended;
      t.is(plain.code, 1);
      t.notRegex(plain.stdout, new RegExp(version));
    },
  };
}

/** Cases of a client that gets the address of a node, a key file, the name of a program and its document. */
function writerCases(run: Run): Cases {
  return {
    async "writes a private program, waits for its block and reads it back, or prints the reason of an error"(t) {
      const node = await startMember(t);
      const target = `127.0.0.1:${node.port}`;
      const keyFile = join(await temporaryDirectory(t), "alice.key");
      await writeKey(keyFile, testKey(2));
      const document = '{ "price": 1.0, "title": "\\u00e9 caf\u00e9" }';
      const { code, stdout, stderr } = await run(t, target, keyFile, "caf\u00e9 \u{1f3f0}", document).ended;
      t.is(code, 0, stderr);
      const [, block, address = ""] = /^block {5}(\d+)\nprogram {3}(stor-[0-9a-f]{40})\ndata {6}/.exec(stdout) ?? [];
      t.true(stdout.endsWith(`\ndata      ${document}\n`), stdout);
      const { number } = await askJson<{ number: number }>(node.port, "/chain/head");
      t.is(number, Number(block));
      t.like(await askJson(node.port, `/storage-program/${address}`), { errorCode: "NOT_FOUND" });

      const rejected = await run(t, target, keyFile, "no JSON", '{"a": 1,}').ended;
      t.is(rejected.code, 1);
      t.regex(rejected.stderr, /INVALID_REQUEST.*The document is not JSON/);
    },

    async "retries after a rate limit"(t) {
      // After the burst, one request per second is allowed.
      const node = await startMember(t, { "rate-limit": "60", "rate-limit-exempt": "" });
      while ((await ask(node.port, "/chain/head")).status !== 429);
      const keyFile = join(await temporaryDirectory(t), "alice.key");
      await writeKey(keyFile, testKey(2));
      const { code, stdout, stderr } = await run(t, `127.0.0.1:${node.port}`, keyFile, "patience", "[]").ended;
      t.is(code, 0, stderr);
      t.true(stdout.endsWith("\ndata      []\n"), stdout);
    },
  };
}

/** Cases of a client that gets the address of a node, a cursor file and optionally a key file. */
function watcherCases(run: Run): Cases {
  const alice = testKey(2);
  const secret: Operation = { case: "createProgram", value: { programName: "b", access: { mode: AccessMode.OWNER } } };

  return {
    async "prints each event once over restarts of the client and the node"(t) {
      const node = await startMember(t);
      const target = `127.0.0.1:${node.port}`;
      const cursorFile = join(node.dir, "cursor");
      // A client that is killed before it stores the cursor prints the last event again.
      const hasStored = (cursor: string) => until(async () => (await readFile(cursorFile, "utf8")).trim() === cursor);
      const first = run(t, target, cursorFile);
      // From here on, the start of the stream is stored.
      await until(() => existsSync(cursorFile));
      const hash1 = await writeAs(alice, node.port, 1, createPublic("a", "{}"));
      await first.prints(`1.0      transaction  ${hash1} included\n1.1      program      stor-`);
      await first.prints("\n1        block        0x");
      await node.stop();
      const again = await startTestNode(t, { genesis: "genesis.json", "rpc-port": String(node.port) }, node.dir);
      const hash2 = await writeAs(alice, again.port, 2, secret);
      await first.prints(`\n2.0      transaction  ${hash2} withheld\n2        block        0x`);
      await hasStored("2");
      first.kill();
      await first.ended;
      const hash3 = await writeAs(alice, again.port, 3, createPublic("c", "{}"));
      const second = run(t, target, cursorFile);
      await second.prints("\n3        block        0x");
      await hasStored("3");
      second.kill();
      const [before, after] = [await first.ended, await second.ended];
      t.regex(before.stderr, /^lost: /);
      const cursors = `${before.stdout}${after.stdout}`.split("\n").map((line) => line.split(" ")[0]);
      t.deepEqual(cursors, ["1.0", "1.1", "1", "2.0", "2", "3.0", "3.1", "3", ""]);
      t.true(after.stdout.startsWith(`3.0      transaction  ${hash3} included\n3.1      program      stor-`));
    },

    async "prints private events with the key of the owner"(t) {
      const node = await startMember(t);
      const files = await temporaryDirectory(t);
      const [cursorFile, keyFile] = [join(files, "cursor"), join(files, "alice.key")];
      await writeKey(keyFile, alice);
      await writeFile(cursorFile, "0\n");
      const hash = await writeAs(alice, node.port, 1, secret);
      const watcher = run(t, `127.0.0.1:${node.port}`, cursorFile, keyFile);
      const expected = `1.0      transaction  ${hash} included\n1.1      program      stor-`;
      await t.notThrowsAsync(watcher.prints(expected));
    },

    async "prints why it cannot resume, and what to do"(t) {
      const node = await startMember(t);
      const cursorFile = join(await temporaryDirectory(t), "cursor");
      await writeFile(cursorFile, "yesterday");
      const target = `127.0.0.1:${node.port}`;
      t.like(await run(t, target, cursorFile).ended, {
        code: 1,
        stdout: "",
        stderr: 'INVALID_REQUEST: from must be an unchanged cursor of a message of this stream, not "yesterday".\n',
      });
      await writeAs(alice, node.port, 1, createPublic("a", "{}"));
      await writeAs(alice, node.port, 2, createPublic("b", "{}"));
      await node.stop();
      await pruneBelow(node, 2);
      await startTestNode(t, { genesis: "genesis.json", "rpc-port": String(node.port) }, node.dir);
      await writeFile(cursorFile, "0");
      const { code, stdout, stderr } = await run(t, target, cursorFile).ended;
      t.deepEqual([code, stdout], [1, ""]);
      t.regex(stderr, /^PRUNED: .*\nSomething was missed\. Without .*cursor it begins with what comes next\.\n$/);
    },
  };
}

/** Marks blocks below this number as pruned in the database of a stopped node. */
export async function pruneBelow({ databaseFile }: Pick<TestNode, "databaseFile">, block: number): Promise<void> {
  const database = await openDatabase(`sqlite:${databaseFile}`);
  await database.write.run((sql) => sql("block_bounds").update({ lowest_block: block }));
  await database.close();
}

function vectorCases(run: Run): Cases {
  return {
    async "reproduces the test vectors, and detects changed ones"(t) {
      const { code, stdout, stderr } = await run(t, "examples/vectors").ended;
      t.is(code, 0, stderr);
      t.regex(stdout, /^1\d\d checks passed\n$/);

      const copy = await temporaryDirectory(t);
      await cp("examples/vectors", copy, { recursive: true });
      const path = join(copy, "transactions.json");
      const content = JSON.parse(await readFile(path, "utf8")) as {
        readonly transactions: readonly { readonly name: string; signature: string }[];
      };
      const changed = content.transactions.find(({ name }) => name === "of another sender")!;
      changed.signature = changed.signature.replace(/^../, (byte) => (byte === "00" ? "01" : "00"));
      await writeFile(path, JSON.stringify(content));
      const wrong = await run(t, copy).ended;
      t.is(wrong.code, 1);
      t.regex(wrong.stderr, /of another sender: the signature is\n/);
    },
  };
}
