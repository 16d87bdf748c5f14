/** Stream limit: limits open streams per address, apart from requests, and releases them with their connections. */
import test, { type ExecutionContext } from "ava";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { type AddressUsage, type Slot, UsageTracker } from "../../src/edge/address-usage.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { createConcurrency, defaultOverload } from "../../src/edge/concurrency.js";
import { RpcError } from "../../src/rpc/errors.js";
import { metricsFlags, readEdgeCounts } from "../helpers/process/prometheus.js";
import { askFrom, sessionFrom } from "../helpers/wire/plain-client.js";
import { grpcMessage } from "../helpers/wire/http2-frames.js";
import { connectRpc, readFailure, type RpcClient } from "../helpers/wire/rpc-clients.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const [attacker, other] = ["127.0.0.5", "127.0.0.6"];
/** Settings without exemptions for the loopback address. */
const flags = { ...metricsFlags, "rate-limit-exempt": "192.0.2.1" };

const watch = "/grpc.health.v1.Health/Watch";
const watchHealth = "/gatehouse.health.v1.HealthService/WatchHealth";
const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/** `list_services: "*"`. */
const listServices = Buffer.from([0x3a, 1, 0x2a]);

/** Outcomes of the opened streams. */
interface OpenedStreams {
  readonly streams: ClientHttp2Stream[];
  /** Number of admitted streams. */
  answered: number;
  /** Number of rejected streams, by status and reason. */
  readonly rejected: Record<string, number>;
}

/** Opens streams, cycling through kinds and sessions. */
function openMany(
  sessions: readonly ClientHttp2Session[],
  count: number,
  kinds = [watch, watchHealth, reflection],
): OpenedStreams {
  const opened: OpenedStreams = { streams: [], answered: 0, rejected: {} };
  const take = (headers: IncomingHttpHeaders): void => {
    const status = headers["grpc-status"];
    if (status === undefined) {
      opened.answered++;
      return;
    }
    const details = Buffer.from(String(headers["grpc-status-details-bin"]), "base64").toString("latin1");
    const key = `${String(status)} ${/[A-Z]+(?:_[A-Z]+)+/.exec(details)?.[0]}`;
    opened.rejected[key] = (opened.rejected[key] ?? 0) + 1;
  };
  for (let i = 0; i < count; i++) {
    const path = kinds[i % kinds.length]!;
    const session = sessions[i % sessions.length]!;
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    opened.streams.push(
      stream
        .on("error", () => undefined)
        .once("response", take)
        .resume(),
    );
    if (path === reflection) {
      stream.write(grpcMessage(listServices));
    } else {
      stream.end(grpcMessage(Buffer.alloc(0)));
    }
  }
  return opened;
}

const rejectedCount = ({ rejected }: OpenedStreams): number =>
  Object.values(rejected).reduce((sum, count) => sum + count, 0);

async function allDecided(opened: OpenedStreams): Promise<void> {
  await until(
    () => opened.answered + rejectedCount(opened) === opened.streams.length,
    "all streams are answered or refused",
  );
}

async function nextOf(client: RpcClient, method: DescMethod, signal: AbortSignal): Promise<object> {
  for await (const message of client.stream(method, {}, signal)) {
    return message;
  }
  throw new Error("The stream ended without a message.");
}

async function isRefusedInEachProtocol(t: ExecutionContext, port: number): Promise<void> {
  for (const [protocol, transport] of [
    ["gRPC by Connect", "HTTP/2 by prior knowledge"],
    ["Connect JSON", "HTTP/1.1"],
    ["Connect binary", "HTTP/2 by prior knowledge"],
    ["gRPC-Web", "HTTP/1.1"],
    ["gRPC-Web", "HTTP/2 by prior knowledge"],
  ] as const) {
    const client = connectRpc(protocol, transport, { port, localAddress: attacker });
    t.teardown(() => client.close());
    const error = await t.throwsAsync(nextOf(client, HealthService.method.watchHealth, new AbortController().signal));
    // RESOURCE_EXHAUSTED.
    t.like(readFailure(error), { code: 8, reason: "TOO_MANY_STREAMS", retryAfterS: 10 }, `${protocol}, ${transport}`);
  }
}

test("admits 100 of 2,000 streams of one address, and serves others meanwhile", async (t) => {
  const node = await startTestNode(t, flags);
  const { port } = node;
  const counts = await readEdgeCounts(node);
  const sessions = Array.from({ length: 11 }, () => sessionFrom(t, port, attacker));
  const first = openMany(sessions, 220);
  await allDecided(first);
  t.is(first.answered, 100);
  await isRefusedInEachProtocol(t, port);
  // Together with the first ones, as many as the rate limit admits per minute.
  const more = openMany(sessions, 1_770);
  await allDecided(more);
  t.is(more.answered, 0);
  t.deepEqual([first.rejected, more.rejected], [{ "8 TOO_MANY_STREAMS": 120 }, { "8 TOO_MANY_STREAMS": 1_770 }]);
  const { openStreams, inFlight } = await counts();
  t.deepEqual({ openStreams, inFlight }, { openStreams: 100, inFlight: 0 });

  t.is((await askFrom(port, "/version", other)).text, '"0.2.0"');
  t.is((await askFrom(port, "/health", other)).status, 200);
  const client = connectRpc("gRPC by Connect", "HTTP/2 by prior knowledge", { port, localAddress: other });
  t.teardown(() => client.close());
  t.like(await client.call(InfoService.method.getVersion, {}), { version: "0.2.0" });
  const controller = new AbortController();
  t.truthy(await nextOf(client, HealthService.method.watchHealth, controller.signal));
  controller.abort();
  await until(async () => (await counts()).openStreams === 100);

  sessions.forEach((session) => session.destroy());
  await until(async () => {
    const after = await counts();
    return after.openStreams === 0 && after.inFlight === 0 && after.heldBytes === 0;
  });
});

test("limits streams by --streams-per-address, including probes, until one ends", async (t) => {
  const node = await startTestNode(t, { ...flags, "streams-per-address": "3" });
  const counts = await readEdgeCounts(node);
  const session = sessionFrom(t, node.port, attacker);
  const probes = openMany([session], 5, [watch]);
  await allDecided(probes);
  t.deepEqual([probes.answered, probes.rejected], [3, { "8 TOO_MANY_STREAMS": 2 }]);
  t.is((await counts()).openStreams, 3);
  const neighbor = openMany([sessionFrom(t, node.port, other)], 3, [watch]);
  await allDecided(neighbor);
  t.is(neighbor.answered, 3);

  const open = probes.streams.find((stream) => !stream.closed)!;
  open.close();
  await until(async () => (await counts()).openStreams === 5);
  const again = openMany([session], 2, [reflection]);
  await allDecided(again);
  t.deepEqual([again.answered, again.rejected], [1, { "8 TOO_MANY_STREAMS": 1 }]);
});

/** Creates a slot of an address, which is released when it gives way. */
function slotOf(usage: AddressUsage, concurrency: Pick<ReturnType<typeof createConcurrency>, "release">) {
  const slot: Slot & { isOpen: boolean } = {
    ...{ usage, isStream: true, newer: undefined, older: undefined, isOpen: true },
    giveWay() {
      slot.isOpen = false;
      concurrency.release(slot);
    },
  };
  return slot;
}

test("limits the streams of all addresses together, and the address with most gives way", (t) => {
  const usageTracker = new UsageTracker();
  const concurrency = createConcurrency(defaultOverload, { total: 5, perAddress: 4 }, usageTracker);
  t.teardown(() => concurrency.stop());
  const [one, two, three] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map((address) => usageTracker.of(address)) as [
    AddressUsage,
    AddressUsage,
    AddressUsage,
  ];
  const open = (usage: AddressUsage) => {
    const slot = slotOf(usage, concurrency);
    concurrency.acquire(slot, true);
    return slot;
  };
  const many = [open(one), open(one), open(one), open(one)];
  t.regex(t.throws(() => open(one), { instanceOf: RpcError }).message, /Your address has 4 streams open/);
  open(two);
  const isOpen = (): boolean[] => many.map((slot) => slot.isOpen);
  t.deepEqual(isOpen(), [true, true, true, true]);
  open(three);
  t.deepEqual(isOpen(), [true, true, true, false]);
  open(two);
  t.deepEqual(isOpen(), [true, true, false, false]);
  t.is(concurrency.overload(), undefined);
  // No address has more than one stream above the number of this one.
  const failure = t.throws(() => open(three), { instanceOf: RpcError });
  t.is(failure.reason, "TOO_MANY_STREAMS");
  t.regex(failure.message, /^The limit of 5 open streams is reached/);
  t.regex(concurrency.overload() ?? "", /^5 streams are open/);
  concurrency.release(many[0]!);
  open(three);
  t.deepEqual([concurrency.counts().openStreams, one.streams, two.streams, three.streams], [5, 1, 2, 2]);
});
