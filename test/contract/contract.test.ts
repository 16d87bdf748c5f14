/**
 * The contract, case by case: compares status, headers and raw JSON over plain HTTP/1.1 with a snapshot. matrix.test.ts
 * compares all other protocols and transports with these responses. An rpc without a case fails.
 */
import { type DescService, getOption } from "@bufbuild/protobuf";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import anyTest, { type ExecutionContext, type TestFn } from "ava";
import { caching, Caching, identifies_caller } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { failures, ReasonSchema } from "../../gen/gatehouse/errors/v1/errors_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { SnapshotService } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { http } from "../../gen/google/api/annotations_pb.js";
import type { Reason } from "../../src/rpc/errors.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { ask, askJson, type PlainResponse } from "../helpers/wire/plain-client.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { type ContractCase, describe, mask, plainRequestOf } from "./case.js";
import { cases } from "./cases.js";
import { list } from "./data.js";
import { type CaseResponse, additionalCases, createExamples, readExamples, writeExamples } from "./examples.js";
import { type ContractNodes, startContractNodes } from "./nodes.js";
import { streams } from "./streams.js";

const test = anyTest as TestFn<ContractNodes>;

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: OpenApiResponses }>>>>;
}
type OpenApiResponses = Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
let openApi: OpenApi;

const fileScope = fileTeardown();

test.before(async (t) => {
  t.context = await startContractNodes(fileScope);
  openApi = await askJson<OpenApi>(t.context.member.port, "/openapi.json");
});

const overPlainHttp = test.macro({
  async exec(t, contractCase: ContractCase) {
    const { status, headers, text } = await askPlainly(t.context, contractCase);
    t.notThrows(() => JSON.parse(text) as unknown);
    t.is(headers["content-type"], "application/json; charset=utf-8");
    t.is(headers["access-control-allow-origin"], "*");
    t.is(headers["x-content-type-options"], "nosniff");
    t.regex(String(headers["x-request-id"]), /^[0-9a-f]{8}-[0-9a-z]+$/);
    const { "x-node-dormant": dormant } = headers as Record<string, string | undefined>;
    checkCaching(t, contractCase, { status, headers, text });
    checkSchema(t, contractCase, status, text);
    t.snapshot(`${status}${dormant === undefined ? "" : ` X-Node-Dormant: ${dormant}`}\n${mask(text)}`);
  },
  title: (_, contractCase: ContractCase) => `${describe(contractCase)} (plain)`,
});

/** Checks that only anonymous responses of rpcs with the option `caching` are cacheable. */
function checkCaching(
  t: Pick<ExecutionContext, "is" | "regex" | "true">,
  { node, method, caller }: ContractCase,
  { status, headers }: PlainResponse,
): void {
  const { etag, "cache-control": cacheControl = "" } = headers;
  const cacheKey = getOption(method, caching);
  if (caller !== undefined || status !== 200 || cacheKey === Caching.UNSPECIFIED) {
    t.is(cacheControl, "private, no-store");
    t.is(etag, undefined);
  } else if (cacheControl === "private, no-store") {
    // A newcomer has no blocks to cache by. The status of a pending transaction changes between blocks.
    t.true(node === "newcomer" || method.name === "GetTransaction", method.name);
    t.is(etag, undefined);
  } else {
    t.regex(
      cacheControl,
      cacheKey === Caching.HASH ? /^public, (no-cache|max-age=31536000, immutable)$/ : /^public, no-cache$/,
    );
    t.regex(etag ?? "", /^W\/"(\d+|network)\.[\w-]{22}"$/);
  }
}

/** Schemas of /openapi.json, compiled once. */
const schemas = new Map<string, ValidateFunction>();
const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** Checks the response against its schema in /openapi.json. */
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
    const responses = openApi.paths[route]![httpMethod.toLowerCase()]!.responses;
    const { $ref, description } = responses[status] ?? {};
    t.true(`${$ref}${description}`.includes(failure.errorCode!), `${route} does not document the error ${text}`);
  }
  const pointer = isFailure
    ? "/components/schemas/Failure"
    : `/paths/${route.replaceAll("/", "~1")}/${httpMethod.toLowerCase()}/responses/${status}/content/application~1json/schema`;
  let validate = schemas.get(pointer);
  if (validate === undefined) {
    if (schemas.size === 0) {
      ajv.addSchema(openApi, "openapi.json");
    }
    validate = ajv.compile({ $ref: `openapi.json#${pointer.replaceAll("{", "%7B").replaceAll("}", "%7D")}` });
    schemas.set(pointer, validate);
  }
  t.true(validate(JSON.parse(text)), `${pointer}: ${ajv.errorsText(validate.errors)}\n${text}`);
}

const plainResponses = new Map<ContractCase, Promise<PlainResponse>>();

/** Returns the response over plain HTTP/1.1, requested once. */
function askPlainly(nodes: ContractNodes, contractCase: ContractCase): Promise<PlainResponse> {
  const { node, path } = contractCase;
  const response = plainResponses.get(contractCase) ?? ask(nodes[node].port, path, plainRequestOf(contractCase));
  plainResponses.set(contractCase, response);
  return response;
}

// Serial, so that counts of requests in flight are equal in each run.
for (const contractCase of cases) {
  test.serial(overPlainHttp, contractCase);
}

test.serial("identity headers make a response private if and only if the rpc identifies its callers", async (t) => {
  const seen = new Map<boolean, number>();
  for (const contractCase of cases) {
    const { node, method, path, httpMethod, caller } = contractCase;
    const isCacheable = getOption(method, caching) !== Caching.UNSPECIFIED;
    const anonymous = await askPlainly(t.context, { ...contractCase });
    if (!isCacheable || httpMethod !== "GET" || caller !== undefined || anonymous.status !== 200) {
      continue;
    }
    const signed = await ask(t.context[node].port, path, plainRequestOf({ ...contractCase, caller: "member" }));
    const { etag, "cache-control": cacheControl } = signed.headers;
    const isIdentified = getOption(method, identifies_caller);
    if (isIdentified) {
      t.deepEqual([cacheControl, etag], ["private, no-store", undefined], path);
    } else {
      const again = await ask(t.context[node].port, path, plainRequestOf(contractCase));
      t.is(cacheControl, again.headers["cache-control"], path);
    }
    seen.set(isIdentified, (seen.get(isIdentified) ?? 0) + 1);
  }
  t.true(seen.get(true)! > 20 && seen.get(false)! > 5, JSON.stringify([...seen]));
});

test.serial("has documented examples that equal the responses of cases", async (t) => {
  const responses: CaseResponse[] = [];
  for (const contractCase of [...cases, ...additionalCases]) {
    const { status, text } = await askPlainly(t.context, contractCase);
    responses.push({ contractCase, status, body: JSON.parse(text) as unknown });
  }
  const created = createExamples(responses);
  if (process.env.RECORD_EXAMPLES !== undefined) {
    await writeExamples(created);
  }
  const shown = await readExamples();
  t.deepEqual(Object.keys(shown), Object.keys(created));
  for (const [name, example] of Object.entries(created)) {
    t.is(mask(JSON.stringify(shown[name])), mask(JSON.stringify(example)), name);
  }
});

/**
 * Errors that a single request cannot cause: test/peers, test/attestation, test/snapshot, test/rpc/answers.test.ts,
 * test/chain/strangers.test.ts and test/node/unreadable.test.ts test them.
 */
const untestedReasons: readonly string[] = [
  "RELAY_UNAVAILABLE",
  "BUSY",
  "PRUNED",
  "ANSWER_TOO_LARGE",
] satisfies Reason[];
const untestedFailures: readonly string[] = [
  "SubmitTransaction",
  ...["GetProgram", "ListFields", "GetField", "GetFieldItem", "HasField", "GetFieldType", "ListProgramHistory"],
].map((name) => `${name} PERMISSION_DENIED`);

test.serial("covers each error of the contract by a case", async (t) => {
  const received = new Set<string>();
  for (const contractCase of cases) {
    const { text } = await askPlainly(t.context, contractCase);
    const { errorCode } = (JSON.parse(text) ?? {}) as { errorCode?: string };
    received.add(`${contractCase.method.name} ${errorCode}`);
  }
  const response = await askJson<{ errorCode: string }>(t.context.member.port, `/storage-program/${list}/type/a`);
  received.add(`GetFieldType ${response.errorCode}`);
  const named = [...new Set(cases.map(({ method }) => method))].flatMap((method) =>
    getOption(method, failures)
      .map((reason) => ReasonSchema.value[reason]!.localName as Reason)
      .filter((reason) => !untestedReasons.includes(reason))
      .map((reason) => `${method.name} ${reason}`)
      .filter((failure) => !untestedFailures.includes(failure)),
  );
  t.true(named.length > 20);
  t.deepEqual(
    named.filter((name) => !received.has(name)),
    [],
  );
});

test("covers every rpc of the contract by a case", async (t) => {
  const covered = new Set(
    [...cases.map(({ method }) => method), ...streams.map(({ stream }) => stream)].map(
      (method) => `${method.parent.typeName}.${method.name}`,
    ),
  );
  // Not served on the public port: test/chain/consensus.test.ts, test/control, test/peers and test/snapshot call them.
  const elsewhere: readonly DescService[] = [ConsensusService, ControlService, PeerService, SnapshotService];
  const methods = (await contractServices())
    .filter((service) => !elsewhere.includes(service))
    .flatMap((service) => service.methods);
  t.true(methods.length > 30);
  t.deepEqual(
    methods.map((method) => `${method.parent.typeName}.${method.name}`).filter((name) => !covered.has(name)),
    [],
  );
});
