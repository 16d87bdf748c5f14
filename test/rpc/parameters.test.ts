/** Invalid parameters of every rpc: each protocol responds with the same error message. */
import { create, type DescField, type DescMethod, getOption, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import test from "ava";
import { bounds, form, latest, TextForm } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { commentOf as commentOfName } from "../../src/rpc/describe/comments.js";
import { rangeOf } from "../../src/rpc/codec/fields.js";
import { readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import { areaOf } from "../../src/rpc/json-rpc/named-methods.js";
import { writeEnvelope } from "../../src/rpc/exchange/rpc-requests.js";
import { contractFiles, contractServices } from "../helpers/process/contract-files.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, jsonPost } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { storeProgram } from "../helpers/chain/submit.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";

const alice = testKey(90);
const key = alice.publicKey;
let node: TestNode;
/** Valid value of each text field, by the field's name. */
let known: Readonly<Record<string, string>> = {};

const files = await contractFiles();
/** Rpcs of the public port with the fields of their requests. */
const internal = ["PeerService", "SnapshotService", "ControlService", "ConsensusService", "AddedService"];
const methods = (await contractServices())
  .filter(
    ({ name, typeName }) =>
      typeName.startsWith("gatehouse.") && !typeName.includes(".testing.") && !internal.includes(name),
  )
  .flatMap((service) => service.methods);
const fileScope = fileTeardown();
test.before(async () => {
  node = await startMember(fileScope);
  const { address } = await storeProgram(fileScope, node, "notes", '{"list":[1,2]}', alice);
  known = { storage_address: address, field: "list", owner: key, query: "notes", hash: key, address: key };
});

const fieldsWhere = (isWanted: (field: DescField) => boolean) =>
  methods.flatMap((method) => method.input.fields.filter(isWanted).map((field) => ({ method, field })));

interface Refusal {
  readonly reason: unknown;
  readonly message: unknown;
}

/** Returns valid values for the other parameters. */
function others(method: DescMethod, field: DescField): [DescField, string][] {
  return method.input.fields
    .filter((each) => each !== field && known[each.name] !== undefined)
    .map((each) => [each, known[each.name]!]);
}

/** Returns the plain HTTP response to values of a parameter; undefined without a route. */
async function askPlainly(method: DescMethod, field: DescField, values: readonly string[]) {
  const rule = readHttpRoutes(method)[0];
  if (rule === undefined || rule.body !== undefined) {
    return undefined;
  }
  const inPath = new Map(
    [...others(method, field), [field, values[0]!] as const].map(([one, value]) => [one.name, value]),
  );
  const path = rule.template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(inPath.get(name) ?? "1"));
  const isInPath = (name: string): boolean => rule.template.includes(`{${name}}`);
  const query = [
    ...others(method, field)
      .filter(([{ name }]) => !isInPath(name))
      .map(([{ jsonName }, value]) => [jsonName, value] as const),
    ...(isInPath(field.name) ? [] : values.map((value) => [field.jsonName, value] as const)),
  ].map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return await ask(node.port, `${path}?${query.join("&")}`, { headers: { Accept: "application/jsonl" } });
}

function refusalOf(text: string): Refusal {
  const { error, errorCode } = JSON.parse(text) as { error: unknown; errorCode: unknown };
  return { reason: errorCode, message: error };
}

async function askJsonRpc(
  method: DescMethod,
  field: DescField,
  value: JsonValue,
  name = field.jsonName,
): Promise<string> {
  const params = {
    ...Object.fromEntries(others(method, field).map(([{ jsonName }, text]) => [jsonName, text])),
    [name]: field.fieldKind === "list" ? [value] : value,
  };
  const request = { jsonrpc: "2.0", id: 1, method: `${areaOf(method.parent)}.${method.localName}`, params };
  return (await ask(node.port, "/", jsonPost(request))).text;
}

async function refusalByJsonRpc(...given: Parameters<typeof askJsonRpc>): Promise<Refusal> {
  const { error } = JSON.parse(await askJsonRpc(...given)) as { error?: { message: string; data: { reason: string } } };
  return { reason: error?.data.reason, message: error?.message };
}

/** Returns the error of each protocol of generated clients for a value. */
async function refusals(
  method: DescMethod,
  field: DescField,
  value: unknown,
): Promise<Readonly<Record<string, Refusal>>> {
  const clients = connectEach(node.port);
  const request = create(method.input, {
    ...Object.fromEntries(others(method, field).map(([{ localName }, text]) => [localName, text])),
    [field.localName]: field.fieldKind === "list" ? [value] : value,
  } as never);
  const found: Record<string, Refusal> = {};
  for (const protocol of rpcProtocols) {
    try {
      if (method.methodKind === "unary") {
        await clients[protocol].call(method, request);
      } else {
        await clients[protocol].stream(method, request, AbortSignal.timeout(60_000))[Symbol.asyncIterator]().next();
      }
      found[protocol] = { reason: undefined, message: undefined };
    } catch (error) {
      const { reason, message } = readFailure(error);
      found[protocol] = { reason, message };
    }
  }
  await Promise.all(Object.values(clients).map((client) => client.close()));
  return found;
}

const invalid = (name: string, problem: string): Refusal => ({
  reason: "INVALID_REQUEST",
  message: `${name} must be ${problem}.`,
});

const numbers = fieldsWhere((field) => rangeOf(field) !== undefined && field.fieldKind === "scalar");
for (const { method, field } of numbers.filter(
  ({ method: { methodKind, name } }) => methodKind === "unary" || name === "Watch",
)) {
  test(`${method.parent.name}.${method.name}: an error for ${field.name} states the accepted range`, async (t) => {
    const { min, max } = rangeOf(field)!;
    const word = getOption(field, latest) ? ", or latest" : "";
    const expected = (name: string, value: string): Refusal =>
      invalid(name, `a whole number from ${min} to ${max}${word}, not ${JSON.stringify(value)}`);
    for (const value of [`${min - 1n}`, `${max + 1n}`, "1e3", "abc", "1.5", "", "99999999999999999999"]) {
      // A path without its last segment is another route.
      const isPath = value === "" && readHttpRoutes(method)[0]?.template.endsWith(`{${field.name}}`) === true;
      const answer = isPath ? undefined : await askPlainly(method, field, [value]);
      if (answer !== undefined) {
        t.is(answer.status, 400, value);
        t.deepEqual(refusalOf(answer.text), expected(field.jsonName, value));
      }
    }
    const twice = await askPlainly(method, field, [`${max}`, `${max}`]);
    if (twice !== undefined && !readHttpRoutes(method)[0]!.template.includes(`{${field.name}}`)) {
      t.deepEqual(refusalOf(twice.text), {
        reason: "INVALID_REQUEST",
        message: `${field.jsonName} is given more than once.`,
      });
    }
    if (method.methodKind === "unary") {
      for (const value of [Number(min) - 1, "abc", 1.5, true, ...(max < 2n ** 53n ? [Number(max) + 1] : [])]) {
        t.deepEqual(await refusalByJsonRpc(method, field, value), expected(field.jsonName, String(value)));
        t.deepEqual(await refusalByJsonRpc(method, field, value, field.name), expected(field.name, String(value)));
      }
    }
    const isLong = field.scalar === ScalarType.UINT64;
    const { max: declared, min: least } = getOption(field, bounds);
    const outside = [...(declared === undefined ? [] : [declared + 1n]), ...(least === undefined ? [] : [least - 1n])];
    for (const value of outside) {
      const found = await refusals(method, field, isLong ? value : Number(value));
      for (const protocol of rpcProtocols) {
        const name = protocol === "Connect JSON" ? field.jsonName : field.name;
        t.deepEqual(found[protocol], expected(name, `${value}`), protocol);
      }
    }
  });
}

const commentOf = ({ parent, name }: DescField): string => commentOfName(`${parent.typeName}.${name}`);

test("declares the form of every public key and the bounds of every ranged number in requests", (t) => {
  const inputs = files
    .filter(({ proto }) => !proto.package.includes("testing"))
    .flatMap(({ services }) =>
      services.filter(({ name }) => !["PeerService", "SnapshotService", "ConsensusService"].includes(name)),
    )
    .flatMap((service) => service.methods.flatMap(({ input }) => input.fields));
  const keys = inputs.filter(
    (field) =>
      field.scalar === ScalarType.STRING && /public key|The key that/i.test(commentOf(field)) && field.name !== "query",
  );
  t.true(keys.length >= 6);
  t.deepEqual(keys.filter((field) => getOption(field, form) !== TextForm.PUBLIC_KEY).map(String), []);
  const ranged = inputs.filter((field) => rangeOf(field) && / 1 to [\d,]+|at most [\d,]+/.test(commentOf(field)));
  t.true(ranged.length >= 8);
  t.deepEqual(ranged.filter((field) => getOption(field, bounds).max === undefined).map(String), []);
});

const digits = key.slice(2);
const spellings = [
  key,
  digits,
  `ed25519:${key}`,
  `ed25519:${digits}`,
  `ed25519:0x${digits.toUpperCase()}`,
  digits.toUpperCase(),
];

for (const { method, field } of fieldsWhere((each) => getOption(each, form) === TextForm.PUBLIC_KEY)) {
  test(`${method.parent.name}.${method.name}: ${field.name} accepts an identity in every spelling`, async (t) => {
    if (method.methodKind === "unary") {
      const asked = await Promise.all(spellings.map((value) => askJsonRpc(method, field, value)));
      t.true(asked[0]!.includes('"result"'), asked[0]);
      t.deepEqual(new Set(asked), new Set([asked[0]]));
      const plain = await Promise.all(spellings.map(async (value) => (await askPlainly(method, field, [value]))!.text));
      t.deepEqual(new Set(plain), new Set([plain[0]]));
    }
    for (const wrong of [`ED25519:${key}`, "ed25519:", `0X${digits}`, `${key}0`, "\u202e\u0007<b>"]) {
      const shown = wrong === "\u202e\u0007<b>" ? '"\\u{202e}\\u0007<b>"' : JSON.stringify(wrong);
      const problem = `an Ed25519 public key of 64 hex digits, with or without ed25519: and 0x before them, not ${shown}`;
      t.deepEqual(refusalOf((await askPlainly(method, field, [wrong]))!.text), invalid(field.jsonName, problem));
      const found = await refusals(method, field, wrong);
      for (const protocol of rpcProtocols) {
        const name = protocol === "Connect JSON" ? field.jsonName : field.name;
        t.deepEqual(found[protocol], invalid(name, problem), protocol);
      }
    }
  });
}

/** Reads a Connect JSON stream: its messages, and the error at its end. */
async function streamJson(rpc: string, request: object): Promise<{ messages: string[]; error?: { message: string } }> {
  const { text } = await ask(node.port, `/${rpc}`, {
    method: "POST",
    body: writeEnvelope(0, Buffer.from(JSON.stringify(request))),
    headers: { "Content-Type": "application/connect+json" },
  });
  const parts = text.split(/[\0\x02]\0[^{]*(?=\{)/).filter((part) => part !== "");
  const { error } = JSON.parse(parts.at(-1)!) as { error?: { message: string } };
  return { messages: parts.slice(0, -1), ...(error !== undefined && { error }) };
}

test("accepts the keyword for the latest block in the JSON of a stream, and rejects unknown enum names", async (t) => {
  const { messages, error } = await streamJson("gatehouse.chain.v1.ChainService/ListBlocks", { fromNumber: "latest" });
  t.is(error, undefined);
  t.is(messages.length, 1);
  const wrong = await streamJson("gatehouse.event.v1.EventService/Watch", {
    kinds: ["EVENT_KIND_PROGRAM", "programs"],
  });
  t.regex(wrong.error?.message ?? "", /^kinds must be one of EVENT_KIND_BLOCK, .*, not "programs"\.$/);
});

test("names the field, the value and the accepted type in the error for a value of another type", async (t) => {
  const search = methods.find(({ name }) => name === "SearchPrograms")!.input.field;
  const method = methods.find(({ name }) => name === "SearchPrograms")!;
  t.is(
    (await refusalByJsonRpc(method, search["exact"]!, "maybe")).message,
    'exact must be true or false, not "maybe".',
  );
  t.is((await refusalByJsonRpc(method, search["query"]!, { a: 1 })).message, "q must be a text, not an object.");
  t.is((await refusalByJsonRpc(method, search["query"]!, [], "query")).message, "query must be a text, not a list.");
  const plain = await askPlainly(method, search["exact"]!, ["x".repeat(1_000)]);
  t.is(refusalOf(plain!.text).message, `exact must be true or false, not "${"x".repeat(80)}…".`);
  const submit = { jsonrpc: "2.0", id: 1, method: "chain.submitTransaction", params: { transaction: { body: "!!" } } };
  const { text } = await ask(node.port, "/", jsonPost(submit));
  t.true(text.includes('"message":"transaction.body must be base64, not \\"!!\\"."'), text);
});
