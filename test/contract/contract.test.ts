/**
 * The contract, case by case: status, headers and raw JSON over plain HTTP against a snapshot, and the same answer over
 * gRPC. An rpc without a case fails.
 */
import { create, type DescService, getOption, type Message, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import anyTest, { type TestFn } from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failures, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { HealthService, SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { ChainService, ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AddedService } from "../../gen/gatehouse/testing/v1/added_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import { catalogue, type Reason } from "../../src/rpc/errors.js";
import { contractServices } from "../helpers/contract-files.js";
import { callerOf } from "../helpers/caller.js";
import { writeKey, testKey } from "../helpers/keys.js";
import { genesisOf, openChain } from "../helpers/chain.js";
import { until } from "../helpers/until.js";
import { connectEach, readFailure, type RpcClient, type RpcProtocol, rpcProtocols } from "../helpers/rpc-clients.js";
import { ask, askJson, type PlainResponse } from "../helpers/plain-client.js";
import { notaryKey } from "../helpers/presentation.js";
import { referenceJson } from "../helpers/reference-json.js";
import { insertProgram, seedDatabase } from "../helpers/seed.js";
import { silentPeer, startTestNode, type TestNode } from "../helpers/start-node.js";
import { temporaryDirectory, fileTeardown } from "../helpers/teardown.js";
import type { ContractCase, NodeName } from "./case.js";
import { cases } from "./cases.js";
import { type Answered, askedBeside, makeExamples, readExamples, writeExamples } from "./examples.js";
import { authorities, blocks, blockTimeMs, list, people, programs } from "./data.js";

type Nodes = Record<NodeName, { readonly node: TestNode; readonly clients: Record<RpcProtocol, RpcClient> }>;
const test = anyTest as TestFn<Nodes>;

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: OpenApiAnswers }>>>>;
}
type OpenApiAnswers = Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
let openApi: OpenApi;

const whole = fileTeardown();

test.before(async (t) => {
  for (const name of ["member", "newcomer"] as const) {
    const dir = await temporaryDirectory(whole);
    await writeKey(join(dir, "identity.key"), testKey(name === "member" ? 1 : 2));
    const flags: Record<string, string | boolean> = {
      "tlsnotary-enabled": true,
      "notary-keys": notaryKey,
    };
    if (name === "member") {
      await seedDatabase(dir, async (database) => {
        for (const program of programs) {
          await insertProgram(database, program);
        }
        const chain = await openChain(database, authorities, () => blockTimeMs);
        for (const transactions of blocks) {
          for (const transaction of transactions) {
            await chain.submit(transaction);
          }
          await chain.seal(authorities[0]);
        }
      });
      await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
      await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
      flags.genesis = "genesis.json";
      flags.peers = "peers.json";
      flags["loop-interval"] = "3600";
      flags["allow-private-peers"] = true;
    }
    const node = await startTestNode(whole, flags, dir);
    const clients = connectEach(node.port);
    whole.teardown(() => Object.values(clients).forEach((client) => client.close()));
    t.context[name] = { node, clients };
  }
  const { port, control } = t.context.member.node;
  openApi = await askJson<OpenApi>(port, "/openapi.json");
  // Its blocks come from outside.
  await createClient(ControlService, control).reportSubsystem({
    name: "chain",
    status: SubsystemStatus.READY,
    leaseS: 3600,
  });
  await until(async () => {
    const health = await askJson<{ main_loop: { iterations_total: number } }>(port, "/health");
    return health.main_loop.iterations_total > 0;
  });
});

/** What differs from run to run, replaced by a word; the types stay visible in what the other tests check. */
function mask(text: string): string {
  return text
    .replace(/"(time|since|timestamp)":1[789]\d{11}\b/g, '"$1":"<ms>"')
    .replace(/"(uptime_s|heartbeat_age_s)":\d+(\.\d+)?/g, '"$1":"<s>"')
    .replace(/"(port|requested|actual)":\d+/g, '"$1":"<port>"')
    .replace(/http:\/\/127\.0\.0\.1:\d{4,}/g, "http://127.0.0.1:<port>");
}

/** The headers of who signs it. */
function headersOf({ caller }: ContractCase): Record<string, string> {
  return caller === undefined ? {} : callerOf(people[caller]).headers();
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
    checkSchema(t, contractCase, status, text);
    t.snapshot(`${status}${dormant === undefined ? "" : ` X-Node-Dormant: ${dormant}`}\n${mask(text)}`);
  },
  title: (_, contractCase: ContractCase) => `${describe(contractCase)} (plain)`,
});

/** What the node itself says of its answers, compiled once. */
const schemas = new Map<string, ValidateFunction>();
const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** The answer has the schema that /openapi.json gives for it. */
function checkSchema(
  t: { true(value: boolean, message: string): void },
  { method, httpMethod }: ContractCase,
  status: number,
  text: string,
): void {
  const { pattern } = getOption(method, http);
  const route = Object.keys(openApi.paths).find(
    (path) => path.replace(/\{\w+\}/g, "{}") === String(pattern.value).replace(/\{\w+\}/g, "{}"),
  )!;
  const failure = JSON.parse(text) as { success?: boolean; errorCode?: string } | null;
  const isFailure = failure?.success === false;
  if (isFailure) {
    const answers = openApi.paths[route]![httpMethod.toLowerCase()]!.responses;
    const { $ref, description } = answers[status] ?? {};
    t.true(`${$ref}${description}`.includes(failure.errorCode!), `${route} is not said to fail with ${text}`);
  }
  const place = isFailure
    ? "/components/schemas/Failure"
    : `/paths/${route.replaceAll("/", "~1")}/${httpMethod.toLowerCase()}/responses/${status}/content/application~1json/schema`;
  let validate = schemas.get(place);
  if (validate === undefined) {
    if (schemas.size === 0) {
      ajv.addSchema(openApi, "openapi.json");
    }
    validate = ajv.compile({ $ref: `openapi.json#${place.replaceAll("{", "%7B").replaceAll("}", "%7D")}` });
    schemas.set(place, validate);
  }
  t.true(validate(JSON.parse(text)), `${place}: ${ajv.errorsText(validate.errors)}\n${text}`);
}

const overJsonRpc = test.macro({
  async exec(t, contractCase: ContractCase) {
    const { method, node, request } = contractCase;
    const plain = await askPlainly(t.context, contractCase);
    const area = method.parent.typeName.split(".").at(-3) ?? "";
    // An empty text or a zero is said, where it is meant.
    const params = toJson(method.input, create(method.input, request as never), { alwaysEmitImplicit: true });
    const { text } = await ask(t.context[node].node.port, "/", {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: `${area}.${method.localName}`, params }),
      headers: { "Content-Type": "application/json", ...headersOf(contractCase) },
    });
    const failure = JSON.parse(plain.text) as { success?: boolean; error?: string; errorCode?: string } | null;
    if (failure?.success === false && plain.status >= 400) {
      const { error } = JSON.parse(text) as { error: { message: string; data?: { reason: string } } };
      t.is(error.message, failure.error!);
      t.is(error.data?.reason, failure.errorCode!);
    } else {
      t.is(mask(text), `{"jsonrpc":"2.0","id":1,"result":${mask(plain.text)}}`);
    }
  },
  title: (_, contractCase: ContractCase) => `${describe(contractCase)} (JSON-RPC)`,
});

const overRpc = test.macro({
  async exec(t, contractCase: ContractCase, protocol: RpcProtocol) {
    const { method, node, request } = contractCase;
    const plain = await askPlainly(t.context, contractCase);
    try {
      const response = await t.context[node].clients[protocol].call(method, request!, headersOf(contractCase));
      t.is(mask(bodyOf(contractCase, response)), mask(plain.text));
    } catch (error) {
      const { code, message, reason } = readFailure(error);
      t.deepEqual(JSON.parse(plain.text), { success: false, error: message, errorCode: reason });
      t.is(code, catalogue[reason as Reason].grpcCode);
    }
  },
  title: (_, contractCase: ContractCase, protocol: RpcProtocol) => `${describe(contractCase)} (${protocol})`,
});

const plainAnswers = new Map<ContractCase, Promise<PlainResponse>>();

/** The answer over plain HTTP, with which those of all other protocols are compared: asked for once. */
function askPlainly(nodes: Nodes, contractCase: ContractCase): Promise<PlainResponse> {
  const { node, path, httpMethod, body } = contractCase;
  const known = plainAnswers.get(contractCase);
  if (known !== undefined) {
    return known;
  }
  const answer = ask(nodes[node].node.port, path, {
    method: httpMethod,
    ...(body !== undefined && { body }),
    headers: { ...(body !== undefined && { "Content-Type": "application/json" }), ...headersOf(contractCase) },
  });
  plainAnswers.set(contractCase, answer);
  return answer;
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
    test.serial(overJsonRpc, contractCase);
    for (const protocol of rpcProtocols) {
      test.serial(overRpc, contractCase, protocol);
    }
  }
}

test.serial("the examples of the interface's documents are what cases get", async (t) => {
  const answers: Answered[] = [];
  for (const contractCase of [...cases, ...askedBeside]) {
    const { status, text } = await askPlainly(t.context, contractCase);
    answers.push({ contractCase, status, body: JSON.parse(text) as unknown });
  }
  const made = makeExamples(answers);
  if (process.env.RECORD_EXAMPLES !== undefined) {
    await writeExamples(made);
  }
  const shown = await readExamples();
  t.deepEqual(Object.keys(shown), Object.keys(made));
  for (const [name, example] of Object.entries(made)) {
    t.is(mask(JSON.stringify(shown[name])), mask(JSON.stringify(example)), name);
  }
});

/** Failures that take more than a case: test/peers, test/attestation and test/rpc/answers.test.ts get them. */
const ofMoreThanACase: readonly Reason[] = ["RELAY_UNAVAILABLE", "BUSY", "ANSWER_TOO_LARGE"];

test.serial("each failure that the contract names for an rpc is what a case gets", async (t) => {
  const got = new Set<string>();
  for (const contractCase of cases) {
    const { text } = await askPlainly(t.context, contractCase);
    const { errorCode } = (JSON.parse(text) ?? {}) as { errorCode?: string };
    got.add(`${contractCase.method.name} ${errorCode}`);
  }
  const ofList = await askJson<{ errorCode: string }>(t.context.member.node.port, `/storage-program/${list}/type/a`);
  got.add(`GetFieldType ${ofList.errorCode}`);
  const named = [...new Set(cases.map(({ method }) => method))].flatMap((method) =>
    getOption(method, failures)
      .map((reason) => ReasonSchema.value[reason]!.localName as Reason)
      .filter((reason) => !ofMoreThanACase.includes(reason))
      .map((reason) => `${method.name} ${reason}`),
  );
  t.true(named.length > 20);
  t.deepEqual(
    named.filter((name) => !got.has(name)),
    [],
  );
});

/** Streams whose first message is what a unary rpc answers. */
const streams = [
  { stream: HealthService.method.watchHealth, unary: HealthService.method.getHealth, request: {}, part: "snapshot" },
  {
    stream: ChainService.method.listBlocks,
    unary: ChainService.method.getBlock,
    request: { number: 1n },
    part: "block",
  },
];

for (const { stream, unary, request, part } of streams) {
  for (const protocol of rpcProtocols.filter((name) => name !== "gRPC")) {
    test.serial(`${stream.name} begins with what ${unary.name} answers (${protocol})`, async (t) => {
      const client = t.context.member.clients[protocol];
      const ended = new AbortController();
      const [first] = await take(client.stream(stream, {}, ended.signal), 1);
      ended.abort();
      const answer = await client.call(unary, request);
      const field = stream.output.fields.find(({ name }) => name === part)!.message!;
      const json = (message: Message) =>
        mask(referenceJson(field, (message as unknown as Record<string, Message>)[part]!));
      t.is(json(first!), json(answer));
    });
  }
}

async function take(messages: AsyncIterable<Message>, count: number): Promise<Message[]> {
  const taken: Message[] = [];
  for await (const message of messages) {
    taken.push(message);
    if (taken.length === count) {
      break;
    }
  }
  return taken;
}

test("every rpc of the contract has a case", async (t) => {
  const covered = new Set(
    [...cases.map(({ method }) => method), ...streams.map(({ stream }) => stream)].map(
      (method) => `${method.parent.typeName}.${method.name}`,
    ),
  );
  // Not served on the public port: test/chain/consensus.test.ts, test/control, test/peers and test/rpc/added call them.
  const elsewhere: readonly DescService[] = [ConsensusService, ControlService, PeerService, AddedService];
  const methods = (await contractServices())
    .filter((service) => !elsewhere.includes(service))
    .flatMap((service) => service.methods);
  t.true(methods.length > 30);
  t.deepEqual(
    methods.map((method) => `${method.parent.typeName}.${method.name}`).filter((name) => !covered.has(name)),
    [],
  );
});
