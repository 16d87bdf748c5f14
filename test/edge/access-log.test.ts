import test from "ava";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { type AccessLine, createAccessLog } from "../../src/edge/access-log.js";
import { connectEach, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { ask } from "../helpers/wire/plain-client.js";
import { startCli } from "../helpers/nodes/start-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const line: AccessLine = {
  requestId: "a-1",
  protocol: "http",
  rpc: undefined,
  address: "192.0.2.1",
  code: "OK",
  latencyMs: 1,
};

test("limits lines per second, and states the number of dropped lines in the next one", (t) => {
  let now = 0;
  const lines: AccessLine[] = [];
  const log = createAccessLog(
    (written) => lines.push(written),
    3,
    () => now,
  );
  for (let i = 0; i < 10; i++) {
    log(() => line);
  }
  t.is(lines.length, 3);
  now = 1_000;
  log(() => line);
  t.deepEqual(lines.slice(3), [{ ...line, unlogged: 7 }]);
  log(() => line);
  t.deepEqual(lines.at(-1), line);
});

test("builds a line only if it is written", (t) => {
  let builtLines = 0;
  const log = createAccessLog(
    () => undefined,
    2,
    () => 0,
  );
  for (let i = 0; i < 5; i++) {
    log(() => {
      builtLines++;
      return line;
    });
  }
  t.is(builtLines, 2);
});

test("logs requests of every protocol with rpc, code and latency, and does not serve the log", async (t) => {
  const node = await startCli(t, [
    "start",
    "--data-dir",
    await temporaryDirectory(t),
    "--host",
    "127.0.0.1",
    "--rpc-port",
    "0",
  ]);
  const { headers } = await ask(node.port, "/version");
  await ask(node.port, "/nothing?secret=1");
  await ask(node.port, `/storage-program/stor-${"0".repeat(40)}`);
  const clients = connectEach(node.port);
  for (const protocol of rpcProtocols) {
    await clients[protocol].call(InfoService.method.getVersion, {});
    clients[protocol].close();
  }
  const access = (): (AccessLine & { msg: string })[] =>
    node
      .stderr()
      .split("\n")
      .filter((text) => text.includes('"access":true'))
      .map((text) => JSON.parse(text) as AccessLine & { msg: string });
  await until(() => access().length >= 3 + rpcProtocols.length);
  const lines = access();
  t.is(lines[0]!.requestId, String(headers["x-request-id"]));
  t.true(lines.every(({ latencyMs, address }) => latencyMs >= 0 && address === "127.0.0.1"));
  t.deepEqual(
    lines.slice(0, 3).map(({ rpc, code }) => [rpc, code]),
    [
      ["gatehouse.info.v1.InfoService/GetVersion", "OK"],
      [undefined, "NOT_FOUND"],
      ["gatehouse.storage.v1.StorageService/GetProgram", "NOT_FOUND"],
    ],
  );
  t.deepEqual(
    lines.slice(3).map(({ protocol }) => protocol),
    ["grpc", "grpc", "connect", "connect", "grpc-web"],
  );
  t.false(node.stderr().includes("secret"));
  t.false((await ask(node.port, "/diagnostics")).text.includes("Answered"));
});
