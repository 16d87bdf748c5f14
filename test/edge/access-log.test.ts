import test from "ava";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import type { AccessLine } from "../../src/edge/request-reporter.js";
import { connectEach, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { ask } from "../helpers/wire/plain-client.js";
import { startCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

test("logs requests of every protocol with rpc, code and latency, and does not serve the log", async (t) => {
  const dataDir = await temporaryDirectory(t);
  const node = await startCli(t, ["start", ...["--data-dir", dataDir, "--host", "127.0.0.1", "--rpc-port", "0"]]);
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
