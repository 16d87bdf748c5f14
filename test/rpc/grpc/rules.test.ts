/** Conformance of the node to gRPC over HTTP/2, tested with raw frames. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import { GetVersionResponseSchema } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { HealthCheckRequestSchema } from "../../../gen/health/v1/health_pb.js";
import { type GrpcAnswer, grpcFields, readGrpcAnswer } from "../../helpers/wire/grpc-exchange.js";
import type { Field } from "../../helpers/wire/hpack.js";
import { grpcMessage, settingIds } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2, type RawAnswer, type RawHttp2, type RawOptions } from "../../helpers/wire/raw-http2.js";
import { askJson } from "../../helpers/wire/plain-client.js";
import { startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { sampleGenesis, sharedTestNode } from "../../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";
import { codes, type Rule, rules } from "./rules.js";

const node = sharedTestNode({ genesis: sampleGenesis });
const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const watchHealth = "/gatehouse.health.v1.HealthService/WatchHealth";
const empty = grpcMessage(Buffer.alloc(0));

async function connect(t: ExecutionContext, options?: RawOptions): Promise<RawHttp2> {
  const connection = await connectRawHttp2(node.port, options);
  t.teardown(() => connection.close());
  return connection;
}

const oneOf = (allowed: number | readonly number[] | undefined): readonly (number | undefined)[] =>
  typeof allowed === "object" ? allowed : [allowed];

const follows = test.macro({
  async exec(t, { path = getVersion, headers, frames = [empty], staysOpen, expected }: Rule) {
    const connection = await connect(t);
    const fields: Field[] = grpcFields("", headers).map((field) => (field[0] === ":path" ? [":path", path] : field));
    const streamId = connection.open(fields, { endStream: frames.length === 0 });
    frames.forEach((bytes, i) =>
      connection.data(streamId, bytes, { endStream: staysOpen !== true && i === frames.length - 1 }),
    );
    const raw = await connection.answer(streamId);
    if (raw.headers[":status"] === undefined) {
      t.true(expected.orReset, `${raw.end} ${raw.resetCode}`);
      return;
    }
    const answer = readGrpcAnswer(raw);
    const shown = JSON.stringify({
      ...answer,
      messages: answer.messages.length,
      details: undefined,
      end: raw.end,
      reset: raw.resetCode,
    });
    t.true(oneOf(expected.httpStatus ?? 200).includes(answer.httpStatus), shown);
    if (answer.httpStatus === 200) {
      t.true(oneOf(expected.grpcStatus).includes(answer.grpcStatus), shown);
      checkGrpc(t, answer, raw, shown);
    } else {
      t.is(answer.grpcStatus, undefined, shown);
    }
    t.true((answer.message ?? "").includes(expected.message ?? ""), shown);
    if (expected.header !== undefined) {
      const [name, value] = expected.header;
      t.regex({ ...raw.headers, ...raw.trailers }[name] ?? "", value, shown);
    }
  },
  title: (_, { rule }: Rule) => rule,
});

/** Checks the rules for every gRPC response. */
function checkGrpc(t: ExecutionContext, answer: GrpcAnswer, raw: RawAnswer, shown: string): void {
  const isOk = answer.grpcStatus === codes.ok;
  t.regex(answer.contentType ?? "", /^application\/grpc(\+proto)?$/, shown);
  t.not(raw.end, "connection", shown);
  t.is(answer.messages.length > 0 || !isOk, true, shown);
  t.true(isOk || /^.{1,1000}$/s.test(answer.message ?? ""), shown);
  t.is(raw.headers["connection"] ?? raw.headers["transfer-encoding"], undefined);
  if (answer.details !== undefined) {
    t.is(answer.details.code, answer.grpcStatus!);
    t.is(answer.details.message, answer.message!);
  }
}

for (const rule of rules) {
  test(follows, rule);
}

test("responds with the version, then with the status in trailers", async (t) => {
  const connection = await connect(t);
  const answer = readGrpcAnswer(await connection.request(grpcFields(getVersion), empty));
  t.is(answer.messages.length, 1);
  t.is(fromBinary(GetVersionResponseSchema, answer.messages[0]!).version, "0.2.0");
  t.false(answer.trailersOnly);
  t.is(answer.grpcStatus, codes.ok);
});

test("treats a missing te: trailers alike in every call", async (t) => {
  const connection = await connect(t);
  const statuses = [];
  for (const [path, timeout] of [
    [getVersion, undefined],
    [watchHealth, "300m"],
  ] as const) {
    const fields = grpcFields(path, { te: undefined, "grpc-timeout": timeout });
    const { grpcStatus, httpStatus } = readGrpcAnswer(await connection.request(fields, empty));
    statuses.push(grpcStatus === codes.ok || grpcStatus === codes.deadlineExceeded ? "taken" : `${httpStatus}`);
  }
  t.is(new Set(statuses).size, 1, statuses.join());
});

test("percent-encodes an error message outside ASCII, and repeats it unencoded in the details", async (t) => {
  const connection = await connect(t);
  const service = "ключ 100%\n";
  const message = grpcMessage(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })));
  const answer = readGrpcAnswer(await connection.request(grpcFields("/grpc.health.v1.Health/Check"), message));
  t.is(answer.grpcStatus, codes.notFound);
  t.regex(answer.rawMessage!, /%D0%BA%D0%BB%D1%8E%D1%87(?: |%20)100%25%0A/i);
  t.is(answer.details?.message, answer.message);
});

test("respects the flow-control window of each stream", async (t) => {
  const connection = await connect(t, { settings: { [settingIds.initialWindow]: 0 }, replenish: false });
  const [first, second] = [0, 1].map(() => {
    const streamId = connection.open(grpcFields(getVersion));
    connection.data(streamId, empty, { endStream: true });
    return streamId;
  }) as [number, number];
  connection.windowUpdate(second, 1_000);
  t.is(readGrpcAnswer(await connection.answer(second)).grpcStatus, codes.ok);
  t.is(connection.received(first).bodyBytes, 0);
  // Increase the window byte by byte.
  const answered = connection.answer(first);
  for (let bytes = 0; bytes < 100; bytes++) {
    connection.windowUpdate(first, 1);
  }
  t.is(readGrpcAnswer(await answered).grpcStatus, codes.ok);
});

test("serves other streams of a connection while one message is incomplete", async (t) => {
  const connection = await connect(t);
  const silent = connection.open(grpcFields(getVersion));
  connection.data(silent, empty.subarray(0, 3));
  for (let i = 0; i < 20; i++) {
    t.is(readGrpcAnswer(await connection.request(grpcFields(getVersion), empty)).grpcStatus, codes.ok);
  }
  t.deepEqual(connection.received(silent).headers, {});
  connection.data(silent, empty.subarray(3), { endStream: true });
  t.is(readGrpcAnswer(await connection.answer(silent)).grpcStatus, codes.ok);
});

test("ends a call at its deadline even if its message never arrives", async (t) => {
  const connection = await connect(t);
  const streamId = connection.open(grpcFields(getVersion, { "grpc-timeout": "300m" }));
  const answer = await connection.answer(streamId);
  t.is(readGrpcAnswer(answer).grpcStatus, codes.deadlineExceeded);
});

test("handles thousands of reset streams without uncaught errors, and with few log lines", async (t) => {
  const { port, stderr } = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "warn"]);
  const kinds: Field[][] = [
    grpcFields(getVersion),
    grpcFields(getVersion, { "content-type": undefined }),
    grpcFields(watchHealth, { "content-type": undefined, te: undefined }),
    grpcFields(watchHealth),
    grpcFields("/nothing/Nothing", { "content-type": undefined }),
    grpcFields(getVersion, { "content-type": "application/json" }),
    grpcFields("/version", { ":method": "GET", "content-type": undefined }),
    grpcFields("/", { "content-type": "application/json" }),
  ];
  for (let round = 0; round < 24; round++) {
    const connection = await connectRawHttp2(port);
    t.teardown(() => connection.close());
    for (let i = 0; i < 250 && !connection.socket.destroyed; i++) {
      const streamId = connection.open(kinds[(i + round) % kinds.length]!);
      if (i % 3 === 0) {
        connection.data(streamId, empty.subarray(0, 2));
      }
      connection.reset(streamId);
    }
    connection.ping();
    await until(() => connection.socket.destroyed || connection.frames.some(({ type }) => type === 6));
    connection.close();
  }
  const { errors } = await askJson<{ errors: Record<string, unknown> }>(port, "/health");
  t.is(errors["uncaught_total"], 0);
  t.is(errors["unhandled_rejection_total"], 0);
  t.true(stderr().split("\n").length < 100, `${stderr().split("\n").length} lines`);
});
