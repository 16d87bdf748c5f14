import test from "ava";
import {
  create,
  createFileRegistry,
  type DescMessage,
  equals,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { HealthSnapshotSchema, HealthStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ProgramDataSchema } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { GetProgramResponseSchema } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { EveryTypeSchema } from "../../../gen/gatehouse/testing/v1/every_type_pb.js";
import { GetMerkleProofResponseSchema } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { makeImmutable } from "../../../src/base/caches/immutable.js";
import { binaryEncoder } from "../../../src/rpc/codec/binary-encoder.js";
import { jsonEncoder } from "../../../src/rpc/codec/json-encoder.js";
import { readJson } from "../../../src/rpc/codec/json-request.js";
import { contractFiles } from "../../helpers/process/contract-files.js";
import { requestDecoder } from "../../../src/rpc/codec/request-rules.js";
import { createRandom, randomMessage } from "../../helpers/wire/random-message.js";
import { referenceJson } from "../../helpers/wire/reference-json.js";

const files = await contractFiles();
const messages: DescMessage[] = files.flatMap((file) =>
  [...nestedTypes(file)].filter((type): type is DescMessage => type.kind === "message"),
);

const rounds = Number(process.env.FUZZ_ROUNDS ?? 40);
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000);

for (const desc of messages) {
  test(`${desc.typeName}: the codecs agree with protobuf-es on random messages`, (t) => {
    const random = createRandom(seed);
    const [encode, json] = [binaryEncoder(desc), jsonEncoder(desc)];
    const count = desc === EveryTypeSchema ? 10 * rounds : rounds;
    for (let round = 0; round < count; round++) {
      const message = randomMessage(desc, random);
      const label = `FUZZ_SEED=${seed}, round ${round}`;
      t.true(equals(desc, fromBinary(desc, encode(message)), message), `encoded; ${label}`);
      t.is(json(message), referenceJson(desc, message), `JSON; ${label}`);
      t.true(
        equals(desc, readJson(desc, toJson(desc, message) as JsonObject) as typeof message, message),
        `read; ${label}`,
      );
    }
  });
}

const json = jsonEncoder(EveryTypeSchema);
const emptyText = json({});

test("encodes an empty literal with the default of every field", (t) => {
  t.is(emptyText, referenceJson(EveryTypeSchema, create(EveryTypeSchema)));
  t.is(binaryEncoder(EveryTypeSchema)({}).length, 0);
});

test("accepts literals with missing fields at any depth", (t) => {
  t.is(
    jsonEncoder(HealthSnapshotSchema)({ status: HealthStatus.OK, boot: { complete: true } }),
    '{"version":"","version_name":"","accepting":false,"mempool_size":null,"uptime_s":0,"status":"ok","dormant":false,' +
      '"boot":{"complete":true,"steps_total":0,"steps_ready":0,"steps_failed":0,"steps_skipped":0,"current":null},' +
      '"subsystems":{},"ports":{},' +
      '"main_loop":{"heartbeat_age_s":null,"iterations_total":0,"exited":false,"exit_reason":null},' +
      '"errors":{"uncaught_total":0,"unhandled_rejection_total":0,"last_uncaught":null}}',
  );
});

test("writes null for an unset message only if it is optional, and rejects a type that always contains itself", (t) => {
  t.true(emptyText.includes('"child":null,"leaf":{"aUint32":0,"aTimestamp":"1970-01-01T00:00:00.000Z"}'), emptyText);
  const loop = {
    name: "loop.proto",
    syntax: "proto3",
    messageType: [
      { name: "Outer", field: [{ name: "inner", number: 1, type: 11, label: 1, typeName: ".Inner" }] },
      { name: "Inner", field: [{ name: "outer", number: 1, type: 11, label: 1, typeName: ".Outer" }] },
    ],
  };
  const file = createFileRegistry(create(FileDescriptorProtoSchema, loop), () => undefined);
  t.throws(() => jsonEncoder(file.getMessage("Outer")!), { message: /Outer contains itself without end/ });
});

test("encodes a map entry named __proto__ like any other, in JSON and in binary", (t) => {
  const entries = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
  t.true(json({ stringsByString: entries }).includes('"stringsByString":{"__proto__":"x","constructor":"y"}'));
  const bytes = binaryEncoder(EveryTypeSchema)({ stringsByString: entries });
  t.true(["__proto__", "constructor"].every((name) => Buffer.from(bytes).includes(name)));
});

test("writes the same JSON for an immutable value each time, and never stale JSON for a mutable one", (t) => {
  const encode = jsonEncoder(HealthSnapshotSchema);
  const boot = { complete: false, current: "ключ" };
  const first = encode({ boot, ports: {} });
  boot.complete = true;
  t.is(encode({ boot, ports: {} }), first.replace('"complete":false', '"complete":true'));
  makeImmutable(boot);
  const remembered = encode({ boot, ports: {} });
  t.is(encode({ boot, ports: {} }), remembered);
  t.is(encode({ boot: { ...boot, complete: false }, ports: {} }), first);
  t.is(encode({ boot, ports: {} }), remembered);
});

test("writes the same bytes for an immutable value each time, and never stale bytes for a mutable one", (t) => {
  const encode = binaryEncoder(HealthSnapshotSchema);
  const decode = (bytes: Uint8Array) => fromBinary(HealthSnapshotSchema, bytes);
  const ports = { rpc: { requested: 1, actual: 2, drifted: true }, long: { requested: 70_000 } };
  const boot = { complete: false, current: "x".repeat(300) };
  encode({ boot, ports });
  boot.complete = true;
  t.like(decode(encode({ boot, ports })), { boot: { complete: true } });
  makeImmutable(boot);
  makeImmutable(ports);
  const first = encode({ version: "1", boot, ports });
  t.deepEqual(encode({ version: "1", boot, ports }), first);
  t.like(decode(encode({ version: "a longer one", boot, ports })), {
    version: "a longer one",
    boot,
    ports: { long: { requested: 70_000 } },
  });
  t.like(decode(encode({ boot: { ...boot, complete: false }, ports: {} })), { boot: { complete: false }, ports: {} });
  t.deepEqual(encode({ version: "1", boot, ports }), first);
});

for (const [form, encoder] of [
  ["JSON", jsonEncoder],
  ["bytes", binaryEncoder],
] as const) {
  test(`${form}: does not cache a value that is only shallowly frozen`, (t) => {
    const encode = encoder(HealthSnapshotSchema);
    const rpc = { requested: 1, actual: 1 };
    const snapshot = Object.freeze({ ports: Object.freeze({ rpc }) });
    const first = encode(snapshot);
    rpc.actual = 2;
    t.notDeepEqual(encode(snapshot), first);
    t.deepEqual(encode(snapshot), encoder(HealthSnapshotSchema)({ ports: { rpc: { requested: 1, actual: 2 } } }));
  });

  test(`${form}: encodes an immutable value once`, (t) => {
    const encode = encoder(HealthSnapshotSchema);
    let reads = 0;
    const boot = makeImmutable({
      get complete() {
        reads++;
        return true;
      },
    });
    const looksBefore = reads;
    for (let i = 0; i < 3; i++) {
      encode({ boot });
    }
    t.is(reads, looksBefore + 1);
  });
}

test("inserts raw JSON text unchanged", (t) => {
  const data = '{ "a":1.0, "b":12345678901234567890,"c":"\\u0000\\ud800" }';
  t.true(jsonEncoder(GetProgramResponseSchema)({ data }).includes(`"data":${data},"metadata":null`));
});

test("writes a list of lists as nested arrays", (t) => {
  const text = jsonEncoder(GetMerkleProofResponseSchema)({ proof: { siblings: [{ hashes: ["0x1"] }, {}] } });
  t.true(text.includes('"siblings":[["0x1"],[]]'));
});

test("escapes strings as JSON.stringify does", (t) => {
  for (const text of [
    "\ud800",
    "a\udc00b",
    "\ud83d",
    "😀",
    "\u2028",
    "\x7f",
    "x".repeat(39) + '"',
    "x".repeat(41) + "\n",
  ]) {
    t.true(json({ aString: text }).includes(`"aString":${JSON.stringify(text)}`));
  }
});

test("writes NaN and infinities as null, and negative zero as zero", (t) => {
  t.true(json({ aDouble: NaN }).startsWith('{"aDouble":null'));
  t.true(json({ aDouble: -Infinity }).startsWith('{"aDouble":null'));
  t.true(json({ aDouble: -0 }).startsWith('{"aDouble":0,'));
});

test("writes an enum value as its name without prefix, and an unknown value as its number", (t) => {
  t.true(json({ aColor: 2 }).includes('"aColor":"dark_green"'));
  t.true(json({ aColor: 77 }).includes('"aColor":77'));
});

test("writes a timestamp as ISO 8601 with milliseconds", (t) => {
  t.true(
    json({ aTimestamp: { seconds: 1767323045n, nanos: 678_999_999 } }).includes(
      '"aTimestamp":"2026-01-02T03:04:05.678Z"',
    ),
  );
  t.true(json({ aTimestamp: {} }).includes('"aTimestamp":"1970-01-01T00:00:00.000Z"'));
});

test("rejects a request that is nested too deeply, without a stack overflow", (t) => {
  let message: object = {};
  for (let depth = 0; depth < 500; depth++) {
    message = { child: message };
  }
  const bytes = binaryEncoder(EveryTypeSchema)(message);
  t.throws(() => requestDecoder(EveryTypeSchema)(bytes), { message: /is not a valid/ });
});

test("does not change encoded bytes when the next message is encoded", (t) => {
  const encode = binaryEncoder(EveryTypeSchema);
  const first = encode({ aString: "first" });
  const copy = Buffer.from(first);
  encode({ aString: "second, and longer" });
  t.deepEqual(first, copy);
});

test("encodes messages larger than the shared buffer completely", (t) => {
  const message = create(EveryTypeSchema, {
    child: { child: { aString: "é".repeat(3_000_000) } },
    someBytes: new Uint8Array(5_000_000),
  });
  t.true(equals(EveryTypeSchema, fromBinary(EveryTypeSchema, binaryEncoder(EveryTypeSchema)(message)), message));
});

test("accepts bytes in JSON as base64 of either alphabet, with or without padding, and nothing else", (t) => {
  for (const text of ["", "AA", "AA==", "AAA", "AAA=", "AAAA", "-_+/", "-_8", "+/8="]) {
    const read = readJson(TransactionSchema, { body: text });
    t.true(equals(TransactionSchema, read as never, fromJson(TransactionSchema, { body: text })), text);
  }
  for (const text of ["A", "A===", "AAAAA", "AA=A", "AA==AAAA", "A\u0141AA", "AA AA", "AA\nAA", "=", "%", "AAAA===="]) {
    const error = t.throws(() => readJson(TransactionSchema, { body: text }), undefined, text);
    t.regex(error.message, /body must be base64/u, text);
  }
  for (const wrong of [7, {}, [], true]) {
    t.throws(() => readJson(TransactionSchema, { body: wrong as never }));
  }
});

test("finds bytes in JSON by either name of their field, and in a oneof", (t) => {
  const read = (json: object) => readJson(ProgramDataSchema, json as never) as never;
  t.true(equals(ProgramDataSchema, read({ binary: "AQI=" }), fromJson(ProgramDataSchema, { binary: "AQI=" })));
  t.true(equals(ProgramDataSchema, read({ json: "{}" }), fromJson(ProgramDataSchema, { json: "{}" })));
  t.throws(() => read({ json: "{}", binary: "AQI=" }));
  const json = JSON.parse('{"__proto__": {"body": "AA=="}, "withheld_hash": "0x"}') as never;
  t.true(
    equals(
      TransactionSchema,
      readJson(TransactionSchema, json) as never,
      fromJson(TransactionSchema, json, { ignoreUnknownFields: true }),
    ),
  );
});

const right = "COLOR_RED";
const wrong = "COLOR_PURPLE";

const places: Readonly<Record<string, (word: string) => JsonValue>> = {
  aColor: (word) => ({ aColor: word }),
  colors: (word) => ({ colors: [right, word] }),
  colorsByBool: (word) => ({ colorsByBool: { true: right, false: word } }),
  colors_by_bool: (word) => ({ colors_by_bool: { true: word } }),
  "child.maybeColor": (word) => ({ child: { maybeColor: word } }),
  "children.child.aColor": (word) => ({ children: [{ child: { aColor: right } }, { child: { aColor: word } }] }),
  "childrenByString.colors": (word) => ({ childrenByString: { a: { colors: [word] } } }),
  "chosenChild.chosenColor": (word) => ({ chosenChild: { chosenColor: word } }),
};

for (const [name, json] of Object.entries(places)) {
  test(`${name}: rejects an unknown enum name, and quotes it`, (t) => {
    t.notThrows(() => readJson(EveryTypeSchema, json(right)));
    const { message } = t.throws(() => readJson(EveryTypeSchema, json(wrong)), { name: "Failure" });
    t.true(message.startsWith(`${name} must be one of COLOR_RED, `), message);
  });
}

test("does not treat null, numbers, timestamps and unknown fields as enum names", (t) => {
  const json = { child: null, aColor: 2, colorsByBool: { true: -3 }, aTimestamp: "2026-01-01T00:00:00Z", no: ["x"] };
  t.like(readJson(EveryTypeSchema, json), { aColor: 2, colorsByBool: { true: -3 } });
});
