/**
 * Every form of every field of every verified request: numbers and words that stand for others, defaults, and other
 * spellings. An honest node is never blamed for one, and the response is that of the node, or an error that says why.
 */
import { create, type DescField, type DescMethod, getOption, type Message, ScalarType } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import {
  addCommitment,
  createGatehouse,
  createProgram,
  type Gatehouse,
  GatehouseError,
  keyFromSeed,
  ProofError,
} from "gatehouse-client";
import { form, latest, TextForm } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { provedReads } from "../../client/src/proof/reads.js";
import { latestBlock } from "../../src/base/latest-block.js";
import { type HttpRoute, pathFieldsOf, readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import { hashPair } from "../../src/zk/poseidon.js";
import { testKey } from "../helpers/chain/keys.js";
import { testNetwork } from "../helpers/chain/transactions.js";
import { startTestLight } from "../helpers/nodes/start-light.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { ask } from "../helpers/wire/plain-client.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const file = fileTeardown();
let node: TestNode;
let plain: Gatehouse;
let head: bigint;
/** Valid value of each text field, by the field's name. */
let texts: Readonly<Record<string, string>>;

test.before(async () => {
  node = await startMember(file);
  const alice = createGatehouse(node.rpcUrl, { signer: keyFromSeed(new Uint8Array(32).fill(1)) });
  plain = createGatehouse(node.rpcUrl);
  file.teardown(() => Promise.all([alice.close(), plain.close()]));
  const data = { title: ["a", "b"], "": 1, "a/b": 2, latest: 3 };
  const { storageAddress, hash } = await alice.submit(createProgram({ name: "notes", access: "public", data }));
  await alice.submit(addCommitment(0xab_cdefn));
  const last = await alice.submit(addCommitment(42n));
  await alice.waitFor(last.hash);
  head = (await alice.chain.getHead({})).number;
  texts = {
    storage_address: storageAddress,
    field: "title",
    hash,
    address: testKey(1).publicKey,
    nullifier_hash: element(0xab_cdef),
    commitment: element(0xab_cdef),
    root: (await alice.zk.getMerkleRoot({})).rootHash,
  };
});

const upper = (text: string): string => text.toUpperCase();

/** Spellings of a text, valid and invalid, by its form. */
const spellings: Readonly<Record<TextForm, (valid: string) => string[]>> = {
  [TextForm.UNSPECIFIED]: (valid) => [valid, "", "a/b", "latest", "no", upper(valid), "constructor", "__proto__", "é"],
  [TextForm.PUBLIC_KEY]: (valid) => {
    const bare = valid.slice(2);
    const prefixed = ["", "0x", "ed25519:", "ed25519:0x"].flatMap((prefix) => [prefix + bare, prefix + upper(bare)]);
    return [...prefixed, `0X${bare}`, `ED25519:${valid}`, ` ${valid}`, "", "latest", valid.slice(0, -1)];
  },
  [TextForm.HASH]: (valid) => {
    const bare = valid.slice(2);
    return [valid, bare, upper(bare), `0x${upper(bare)}`, `0X${bare}`, "", "latest", valid.slice(0, -1), element(1)];
  },
  [TextForm.FIELD_ELEMENT]: (valid) => {
    const bare = valid.slice(2);
    return [valid, `0x${upper(bare)}`, bare, `0X${bare}`, "", "latest", element(0), `0x${"f".repeat(64)}`];
  },
  [TextForm.PROGRAM_ADDRESS]: (valid) => [valid, upper(valid), valid.slice(5), "", "latest", `stor-${"0".repeat(40)}`],
};

/** Block numbers and what stands for one. */
const blockNumbers = (): bigint[] => [
  0n,
  1n,
  head,
  head + 1n,
  2n ** 53n - 1n,
  2n ** 53n,
  latestBlock - 1n,
  latestBlock,
];
const indexes = [0, 1, 2, 2 ** 31, 2 ** 32 - 1];

/** Values of a field in a message. Throws for a field whose forms this test does not know. */
function valuesOf(field: DescField): unknown[] {
  switch (field.scalar) {
    case ScalarType.STRING:
      return spellings[getOption(field, form)](texts[field.name]!);
    case ScalarType.UINT64:
      return getOption(field, latest) ? blockNumbers() : fail(field);
    case ScalarType.UINT32:
      return indexes;
    case ScalarType.BOOL:
      return [true, false];
    default:
      return fail(field);
  }
}

function fail({ parent, name }: DescField): never {
  throw new Error(`Add the forms of ${parent.typeName}.${name} to this test.`);
}

/** Texts of a field in a path or a query. */
function textsOf(field: DescField): string[] {
  const values = valuesOf(field).map(String);
  switch (field.scalar) {
    case ScalarType.UINT64:
      return [...values, "latest", "LATEST", "", "-1", "01", "1.0", "1e3", "0x1", "1,000", String(2n ** 64n), " 1"];
    case ScalarType.UINT32:
      return [...values, "latest", "", "-1", "01", "1.0", String(2 ** 32)];
    case ScalarType.BOOL:
      return [...values, "", "1", "TRUE"];
    default:
      return values;
  }
}

/** Methods whose requests are reads. A submission has no defaults. */
const methods = provedReads
  .map(({ method }) => method as DescMethod)
  .filter((method) => method !== (ChainService.method.submitTransaction as DescMethod));

/** Requests of a method: valid ones, and variants of each field. */
function requestsOf(method: DescMethod): Message[] {
  const required = Object.fromEntries(
    method.input.fields
      .filter((field) => !field.proto.proto3Optional)
      .map((field) => [field.localName, valuesOf(field)[0]]),
  );
  const variants = method.input.fields.flatMap((field) =>
    valuesOf(field).map((value) => ({ ...required, [field.localName]: value })),
  );
  return [required, ...variants].map((fields) => create(method.input, fields));
}

/** Paths of a method: each field in each form, and forms of the path itself. */
function pathsOf(method: DescMethod): string[] {
  const [{ template }] = readHttpRoutes(method) as [HttpRoute];
  const inPath = pathFieldsOf(template);
  const pathOf = (changed?: DescField, text = ""): string => {
    const path = method.input.fields.reduce((filled, field) => {
      const valid = field.scalar === ScalarType.UINT64 ? "1" : textsOf(field)[0]!;
      return filled.replace(`{${field.name}}`, () => encodeURIComponent(field === changed ? text : valid));
    }, template);
    const isQuery = changed !== undefined && !inPath.includes(changed.name);
    return isQuery ? `${path}?${changed.jsonName}=${encodeURIComponent(text)}` : path;
  };
  const base = pathOf();
  return [
    base,
    ...method.input.fields.flatMap((field) => textsOf(field).map((text) => pathOf(field, text))),
    ...["/", "?", "?unknown=1", "//", "?block=1&block=1", "?block", "%20", "%"].map((ending) => base + ending),
    base.replace(/\w$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
    base.replace(/^\/(\w)/, (_, first: string) => `/${first.toUpperCase()}`),
  ];
}

for (const method of methods) {
  test(`no form of a request of ${method.name} makes a light node blame an honest node`, async (t) => {
    const { light, lines } = await startTestLight(t, [node.rpcUrl]);
    const statuses = new Set<number>();
    for (const path of pathsOf(method)) {
      const [verified, original] = await Promise.all([ask(light.port, path), ask(node.port, path)]);
      const label = `${path}: ${verified.status} ${verified.text}, not ${original.status} ${original.text}`.slice(
        0,
        500,
      );
      t.deepEqual(lines, [], label);
      statuses.add(verified.status);
      if (/^\{"success":false,"error":"Responses of \w+\.List\w+ cannot be proved/.test(verified.text)) {
        t.regex(path, /\/$/, label);
      } else if (verified.status === 501) {
        // The node's error has no proof.
        t.true(original.status >= 400, label);
        t.regex(verified.text, /without a proof|cannot be proven/, label);
      } else {
        t.is(verified.status, original.status, label);
        t.is(fieldsOf(verified.text), fieldsOf(original.text), label);
      }
    }
    t.true(statuses.has(200), [...statuses].join());
  });

  test(`no form of a request of ${method.name} makes the client package blame an honest node`, async (t) => {
    const client = createGatehouse(node.rpcUrl, {
      retry: false,
      verify: { genesisHash: testNetwork, hashPair, maxAgeS: 3_600 },
    });
    t.teardown(() => client.close());
    for (const request of requestsOf(method)) {
      await compare(t, method, request, client);
    }
  });
}

/** Compares the responses of a verifying client and of one that trusts the node. */
async function compare(t: ExecutionContext, method: DescMethod, request: Message, client: Gatehouse): Promise<void> {
  const [verified, original] = await Promise.all([
    outcomeOf(client, method, request),
    outcomeOf(plain, method, request),
  ]);
  const label = `${method.name} ${JSON.stringify(request, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))}`;
  if (verified instanceof ProofError) {
    t.is(verified.flaw, "unprovable", `${label}: ${verified.message}`);
    t.true(original instanceof GatehouseError, label);
  } else if (verified instanceof GatehouseError) {
    t.true(original instanceof GatehouseError, `${label}: ${verified.message}`);
    t.deepEqual([verified.reason, verified.fromNode], [(original as GatehouseError).reason, false], label);
  } else {
    t.deepEqual(stripped(verified), stripped(original as Message), label);
  }
}

/** Returns a message without the fields that only the node states. */
function stripped(message: Message): object {
  const { head: _, lowestBlock: __, ...fields } = message as Message & { head?: unknown; lowestBlock?: unknown };
  return fields;
}

async function outcomeOf(client: Gatehouse, method: DescMethod, request: Message): Promise<Message | GatehouseError> {
  const service = { ...client }[method.parent.name.replace("Service", "").toLowerCase() as "storage"];
  const calls = service as never as Record<string, (request: Message) => Promise<Message>>;
  try {
    return await calls[method.localName]!(request);
  } catch (error) {
    if (error instanceof GatehouseError) {
      return error;
    }
    throw error;
  }
}

/** Returns a response without fields that only the node states, and without the parts of a message that differ. */
function fieldsOf(text: string): string {
  return text
    .replace(/,"head":\{.*?\}/, "")
    .replace(/,"lowestBlock":\d+/, "")
    .replace(/at this address that .*?"/, 'at this address."')
    .replace(/"error":"Roots are known after .*?"/, '"error":"There is no such block yet."');
}

test("a value that cannot be sent is the caller's error", async (t) => {
  const client = createGatehouse(node.rpcUrl, { retry: false, verify: { genesisHash: testNetwork, maxAgeS: 3_600 } });
  t.teardown(() => client.close());
  const storageAddress = texts["storage_address"]!;
  for (const call of [
    () => client.chain.getBlock({ number: -1n }),
    () => client.chain.getBlock({ number: 2n ** 64n }),
    () => client.storage.getField({ storageAddress, field: "\ud800" }),
    () => client.storage.getFieldItem({ storageAddress, field: "title", index: 1.5 }),
    () => client.storage.getFieldItem({ storageAddress, field: "title", index: -1 }),
    () => client.storage.getProgram({ storageAddress: 5 as unknown as string }),
  ]) {
    const error = await t.throwsAsync(call, { instanceOf: GatehouseError });
    t.deepEqual([error.reason, error.fromNode], ["INVALID_REQUEST", false], error.message);
  }
  for (const maxAgeS of [NaN, -1]) {
    t.throws(() => createGatehouse(node.rpcUrl, { verify: { genesisHash: testNetwork, maxAgeS } }), {
      instanceOf: TypeError,
    });
  }
});
