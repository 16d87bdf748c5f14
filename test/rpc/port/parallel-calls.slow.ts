/** Hundreds of concurrent calls on one connection, for each ALPN offer: each gets its response and status. */
import test, { type ExecutionContext } from "ava";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import { sharedTargets } from "../../helpers/nodes/start-node.js";
import { grpcFields, readGrpcAnswer } from "../../helpers/wire/grpc-exchange.js";
import { grpcMessage } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { connectRpc, readFailure, type RpcClient } from "../../helpers/wire/rpc-clients.js";
import { type TransportName, transports } from "../../helpers/wire/transports.js";

const targetOf = sharedTargets();
const parallel = 300;
const rounds = 10;

const overHttp2 = (Object.keys(transports) as TransportName[]).filter((name) => transports[name].http === "2");

for (const name of overHttp2) {
  for (const protocol of ["gRPC", "gRPC by Connect", "Connect binary", "gRPC-Web"] as const) {
    test.serial(`${parallel} parallel calls, ${rounds} times, ${protocol} over ${name}`, async (t) => {
      const client = connectRpc(protocol, name, targetOf(name));
      t.teardown(() => client.close());
      for (let round = 0; round < rounds; round++) {
        t.deepEqual(count(await Promise.all(Array.from({ length: parallel }, (_, i) => outcome(client, i)))), expected);
      }
    });
  }

  test.serial(`${parallel} parallel calls, ${rounds} times, raw frames over ${name}`, async (t) => {
    for (let round = 0; round < rounds; round++) {
      t.deepEqual(await rawStatuses(t, name), { "200 0": parallel });
    }
  });

  test.serial(`starts WatchHealth each time, next to other calls, over ${name}`, async (t) => {
    const client = connectRpc("gRPC by Connect", name, targetOf(name));
    t.teardown(() => client.close());
    for (let round = 0; round < 5; round++) {
      const others = Array.from({ length: 50 }, (_, i) => outcome(client, 3 * i));
      const firsts = await Promise.all(Array.from({ length: 10 }, () => firstOfWatch(client)));
      t.deepEqual(count(firsts), { 1: 10 });
      t.deepEqual(count(await Promise.all(others)), { "0.2.0": 50 });
    }
  });
}

/** Calls an rpc, and returns its outcome. Every third call fails. */
async function outcome(client: RpcClient, i: number): Promise<string> {
  const { getVersion } = InfoService.method;
  const call = i % 3 === 2 ? client.call(ChainService.method.getHead, {}) : client.call(getVersion, {});
  return await call.then(
    (message) => (message as unknown as { version: string }).version,
    (error: unknown) => {
      const { code, reason } = readFailure(error);
      return `${code} ${reason}`;
    },
  );
}

/** The nodes have no genesis, so there is no head. */
const expected = { "0.2.0": (parallel / 3) * 2, "14 STATE_NOT_READY": parallel / 3 };

function count(outcomes: readonly (string | number)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) {
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

async function firstOfWatch(client: RpcClient): Promise<number> {
  const ended = new AbortController();
  let messages = 0;
  for await (const _ of client.stream(HealthService.method.watchHealth, {}, ended.signal)) {
    messages += 1;
    break;
  }
  ended.abort();
  return messages;
}

/** Sends all requests in one write, up to the stream limit. Returns HTTP status and gRPC status of each. */
async function rawStatuses(t: ExecutionContext, name: TransportName): Promise<Record<string, number>> {
  const { alpn } = transports[name];
  const { port, ca } = targetOf(name);
  const connection = await connectRawHttp2(port, { ...(alpn && { alpn }), ...(ca && { ca }) });
  t.teardown(() => connection.close());
  const fields = grpcFields("/gatehouse.info.v1.InfoService/GetVersion");
  const statuses: string[] = [];
  const atATime = 100;
  for (let sent = 0; sent < parallel; sent += atATime) {
    connection.socket.cork();
    const answers = Array.from({ length: atATime }, () => connection.request(fields, grpcMessage(Buffer.alloc(0))));
    connection.socket.uncork();
    for (const answer of await Promise.all(answers)) {
      const { httpStatus, grpcStatus } = readGrpcAnswer(answer);
      statuses.push(`${httpStatus} ${grpcStatus}`);
    }
  }
  connection.close();
  return count(statuses);
}
