/**
 * The contract, case by case: status, headers and raw JSON over plain HTTP against a snapshot, and the same answer over
 * gRPC. An rpc without a case fails.
 */
import { getOption, type Message } from "@bufbuild/protobuf";
import anyTest, { type TestFn } from "ava";
import { createPrivateKey } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { http } from "../../gen/google/api/annotations_pb.js";
import { contractServices } from "../helpers/contract-files.js";
import { until } from "../helpers/until.js";
import { connectGrpc, readFailure, type TestGrpcClient } from "../helpers/grpc-client.js";
import { ask, askJson } from "../helpers/plain-client.js";
import { referenceJson } from "../helpers/reference-json.js";
import { insertProgram, insertTree, seedDatabase } from "../helpers/seed.js";
import { sampleGenesis, silentPeer, startTestNode, temporaryDirectory, type TestNode } from "../helpers/start-node.js";
import type { ContractCase, NodeName } from "./case.js";
import { cases } from "./cases.js";
import { leaves, programs, treeBlock, usedNullifier } from "./data.js";

type Nodes = Record<NodeName, { readonly node: TestNode; readonly grpc: TestGrpcClient }>;
const test = anyTest as TestFn<Nodes>;

/** PKCS #8 before the 32 bytes of an Ed25519 key. */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

test.before(async (t) => {
  const teardown = { teardown: (close: () => unknown) => closers.push(close) };
  for (const name of ["member", "newcomer"] as const) {
    const dir = await temporaryDirectory(teardown);
    await placeKey(dir, name === "member" ? 1 : 2);
    const flags: Record<string, string | boolean> = { "tlsnotary-enabled": true };
    if (name === "member") {
      await seedDatabase(dir, async (database) => {
        for (const program of programs) {
          await insertProgram(database, program);
        }
        await insertTree(database, leaves, treeBlock);
        await database.write("nullifiers").insert(usedNullifier);
      });
      await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
      flags.genesis = sampleGenesis;
      flags.peers = "peers.json";
      flags["loop-interval"] = "3600";
    }
    const node = await startTestNode(teardown, flags, dir);
    const grpc = connectGrpc(node.port);
    closers.push(() => grpc.close());
    t.context[name] = { node, grpc };
  }
  const { port } = t.context.member.node;
  await until(async () => {
    const health = await askJson<{ main_loop: { iterations_total: number } }>(port, "/health");
    return health.main_loop.iterations_total > 0;
  });
});

const closers: (() => unknown)[] = [];
test.after.always(async () => {
  for (const close of closers.reverse()) {
    await close();
  }
});

async function placeKey(dir: string, seed: number): Promise<void> {
  const der = Buffer.concat([pkcs8Prefix, Buffer.alloc(32, seed)]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "identity.key"), key.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
}

/** What differs from run to run, replaced by a word; the types stay visible in what the other tests check. */
function mask(text: string): string {
  return text
    .replace(/"(time|since|timestamp)":1[789]\d{11}\b/g, '"$1":"<ms>"')
    .replace(/"(uptime_s|heartbeat_age_s)":\d+(\.\d+)?/g, '"$1":"<s>"')
    .replace(/"(port|requested|actual)":\d+/g, '"$1":"<port>"')
    .replace(/http:\/\/127\.0\.0\.1:\d{4,}/g, "http://127.0.0.1:<port>");
}

function describe({ node, httpMethod, path, title }: ContractCase): string {
  return `${httpMethod} ${path}: ${title}${node === "member" ? "" : ", on a newcomer"}`;
}

const overPlainHttp = test.macro({
  async exec(t, contractCase: ContractCase) {
    const { status, headers, text } = await askPlainly(t.context, contractCase);
    t.notThrows(() => JSON.parse(text) as unknown);
    t.is(headers["content-type"], "application/json; charset=utf-8");
    t.is(headers["access-control-allow-origin"], "*");
    t.regex(String(headers["x-request-id"]), /^[0-9a-f]{8}-[0-9a-z]+$/);
    const { "x-node-dormant": dormant } = headers as Record<string, string | undefined>;
    t.snapshot(`${status}${dormant === undefined ? "" : ` X-Node-Dormant: ${dormant}`}\n${mask(text)}`);
  },
  title: (_, contractCase: ContractCase) => `${describe(contractCase)} (plain)`,
});

const overGrpc = test.macro({
  async exec(t, contractCase: ContractCase) {
    const { method, node, request } = contractCase;
    const plain = await askPlainly(t.context, contractCase);
    try {
      const response = await t.context[node].grpc.call(method, request as Record<string, unknown>);
      t.is(mask(bodyOf(contractCase, response)), mask(plain.text));
    } catch (error) {
      const failure = readFailure(error);
      t.deepEqual(JSON.parse(plain.text), { success: false, error: failure.message, errorCode: failure.reason });
      t.snapshot(failure.code);
    }
  },
  title: (_, contractCase: ContractCase) => `${describe(contractCase)} (gRPC)`,
});

function askPlainly(nodes: Nodes, { node, path, httpMethod, body }: ContractCase) {
  return ask(nodes[node].node.port, path, {
    method: httpMethod,
    ...(body !== undefined && { body, headers: { "Content-Type": "application/json" } }),
  });
}

/** The plain body of a response, made by reflection. */
function bodyOf({ method }: ContractCase, response: Message): string {
  const { responseBody } = getOption(method, http);
  const whole = referenceJson(method.output, response);
  if (responseBody === "") {
    return whole;
  }
  const field = method.output.fields.find(({ name }) => name === responseBody)!;
  const start = `{${JSON.stringify(field.jsonName)}:`;
  return whole.slice(start.length, -1);
}

// In series, so that counts of requests in flight are the same each time.
for (const contractCase of cases) {
  test.serial(overPlainHttp, contractCase);
  if (contractCase.request !== undefined) {
    test.serial(overGrpc, contractCase);
  }
}

test("every rpc of the contract has a case", async (t) => {
  const covered = new Set(cases.map(({ method }) => `${method.parent.typeName}.${method.name}`));
  const methods = (await contractServices()).flatMap((service) => service.methods);
  t.true(methods.length > 30);
  t.deepEqual(
    methods.map((method) => `${method.parent.typeName}.${method.name}`).filter((name) => !covered.has(name)),
    [],
  );
});
