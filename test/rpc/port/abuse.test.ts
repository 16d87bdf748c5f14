/** Abuse: the address is banned temporarily, abusive connections are closed, and other clients are served. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { metricsFlags, readEdgeCounts } from "../../helpers/process/prometheus.js";
import { askFrom, askJson } from "../../helpers/wire/plain-client.js";
import { grpcFields } from "../../helpers/wire/grpc-exchange.js";
import { encodeBlock } from "../../helpers/wire/hpack.js";
import {
  errorCodes,
  flags,
  frameBytes,
  frameTypes,
  numberBytes,
  resetStreams,
} from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { fileTeardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const fileScope = fileTeardown();
let node: Awaited<ReturnType<typeof startNodeProcess>>;

test.before(async () => {
  const flagsOf = { ...metricsFlags, "rate-limit-exempt": "192.0.2.1", "log-level": "info" };
  const args = Object.entries(flagsOf).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
  node = await startNodeProcess(fileScope, await temporaryDirectory(fileScope), args);
});

const path = "/gatehouse.info.v1.InfoService/GetVersion";
const [rpc, untyped] = [undefined, { "content-type": undefined }].map((overrides) =>
  encodeBlock(grpcFields(path, overrides)),
) as [Buffer, Buffer];

/** Checks that others are served, that no error was uncaught, and that the log has few lines. */
async function isFine(t: ExecutionContext): Promise<void> {
  t.is((await askFrom(node.port, "/version", "127.0.0.6")).text, '"0.2.0"');
  const { errors } = await askJson<{ errors: Record<string, unknown> }>(node.port, "/health");
  t.is(errors["uncaught_total"], 0);
  t.is(errors["unhandled_rejection_total"], 0);
}

for (const [title, block, attacker] of [
  ["rapid resets", rpc, "127.0.0.7"],
  ["headers and RST without a content type", untyped, "127.0.0.8"],
] as const) {
  test.serial(`${title}: bans the address, closes the connection, and serves others`, async (t) => {
    const counts = await readEdgeCounts(node);
    const [bad, idle, neighbor] = await Promise.all(
      [attacker, attacker, "127.0.0.6"].map((localAddress) =>
        connectRawHttp2(node.port, { localAddress, replenish: false }),
      ),
    );
    for (const connection of [bad!, idle!, neighbor!]) {
      t.teardown(() => connection.close());
    }
    const [perWrite, most] = [100, 20_000];
    for (let sent = 0; sent < most && !bad!.socket.closed && bad!.socket.writable; sent += perWrite) {
      bad!.write(resetStreams(block, 1 + 2 * sent, perWrite));
      await isFine(t);
    }
    await until(() => bad!.socket.closed);
    t.deepEqual([idle!.socket.closed, neighbor!.socket.closed], [false, false]);

    // In the ban, a connection ends at its first penalty, and whatever an attacker opens, others of the address go on.
    for (let i = 0; i < 5; i++) {
      const again = await connectRawHttp2(node.port, { localAddress: attacker, replenish: false });
      t.teardown(() => again.close());
      again.write(resetStreams(block, 1, 1));
      await until(() => again.socket.closed);
      t.is((await askFrom(node.port, "/version", attacker)).status, 200);
    }
    await isFine(t);
    await until(async () => (await counts()).inFlight === 0);
    // The log has at most one line per second, so the line may be of the test before.
    t.true(logged().some(({ msg }) => msg.startsWith("An address is banned")));
  });
}

test.serial("bodies in pieces of one byte lead to a ban of their address", async (t) => {
  const attacker = "127.0.0.11";
  const banned = (): boolean =>
    logged().some((line) => line.msg.startsWith("An address is banned") && line.address === attacker);
  const body = "1\r\n \r\n".repeat(5_000);
  // The log has at most one line of a ban per second.
  await sleep(1_100);
  for (let i = 0; i < 20 && !banned(); i++) {
    const socket = connect({ host: "127.0.0.1", port: node.port, localAddress: attacker }).resume();
    t.teardown(() => socket.destroy());
    socket.on("error", () => undefined);
    const path = i % 2 === 0 ? "/" : "/nothing";
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    await until(() => socket.closed);
  }
  await until(banned);
  await isFine(t);
});

test.serial("closes a connection that resets a hundred streams as it opens them", async (t) => {
  const bad = await connectRawHttp2(node.port, { localAddress: "127.0.0.9", replenish: false });
  t.teardown(() => bad.close());
  bad.write(resetStreams(rpc, 1, 110));
  await until(() => bad.socket.closed);
  await isFine(t);
});

test.serial("tolerates two hundred calls that are canceled later", async (t) => {
  const fair = await connectRawHttp2(node.port, { localAddress: "127.0.0.10" });
  t.teardown(() => fair.close());
  const streams = Array.from({ length: 200 }, (_, i) => 1 + 2 * i);
  fair.write(Buffer.concat(streams.map((stream) => frameBytes(frameTypes.headers, flags.endHeaders, stream, rpc))));
  await isFine(t);
  const cancel = numberBytes(errorCodes.cancel);
  fair.write(Buffer.concat(streams.map((stream) => frameBytes(frameTypes.reset, 0, stream, cancel))));
  await isFine(t);
  t.false(fair.socket.closed);
  t.is((await askFrom(node.port, "/version", "127.0.0.10")).text, '"0.2.0"');
});

test.serial("executes no request of a connection that was reset before its accept", async (t) => {
  const request = "GET /publickey HTTP/1.1\r\nHost: node\r\n\r\n";
  node.child.kill("SIGSTOP");
  const sockets = Array.from({ length: 20 }, () => connect({ port: node.port, host: "127.0.0.1" }));
  await Promise.all(
    sockets.map(async (socket) => {
      await new Promise((resolve) => socket.write(request, resolve));
      socket.resetAndDestroy();
    }),
  );
  node.child.kill("SIGCONT");
  await isFine(t);
  const callers = () => logged().flatMap((line) => (line.rpc?.endsWith("/GetPublicKey") ? [line.address] : []));
  // The log of a second is limited, so that of this request may be left out.
  await until(async () => {
    await askFrom(node.port, "/publickey", "127.0.0.11");
    return callers().includes("127.0.0.11");
  });
  t.deepEqual([...new Set(callers())], ["127.0.0.11"]);
});

test.serial("logs at most one line per second about abuse", (t) => {
  const lines = logged();
  const cancelled = lines.filter(({ code }) => code === "CANCELLED");
  t.log(`${lines.length} lines, ${cancelled.length} of those who left`);
  t.true(cancelled.length < 60);
  t.true(lines.filter(({ msg }) => /banned for/.test(msg)).length <= 4);
});

interface Line {
  readonly msg: string;
  readonly code?: string;
  readonly rpc?: string;
  readonly address?: string;
}

function logged(): Line[] {
  return node
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line);
}
