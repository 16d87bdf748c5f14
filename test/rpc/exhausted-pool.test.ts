/** A request that gets no connection of a database in time is OVERLOADED in every protocol: 503 with Retry-After. */
import test from "ava";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { createEdge } from "../../src/edge/edge.js";
import { toRpcError } from "../../src/rpc/errors.js";
import { serve } from "../../src/rpc/service.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { openSettings, startServices } from "../helpers/nodes/edge-server.js";
import { until } from "../helpers/nodes/until.js";
import { ask } from "../helpers/wire/plain-client.js";
import {
  type AnyRpcProtocol,
  connectRpc,
  readFailure,
  type RpcClient,
  rpcProtocols,
} from "../helpers/wire/rpc-clients.js";

const engines = await prepareEngines();
const message = "The node's database is busy; try again in 5 s.";
/** Protocols whose clients report the error of a stream. */
const streamed: readonly AnyRpcProtocol[] = ["gRPC by Connect", "Connect JSON", "gRPC-Web"];
const protocols: readonly AnyRpcProtocol[] = [...rpcProtocols, "Connect GET", "gRPC-Web text"];

for (const engine of engines.names) {
  for (const edge of ["compiled", "express"] as const) {
    test(`a request that waits too long for a connection is OVERLOADED, ${engine}, ${edge} edge`, async (t) => {
      const database = await engines.open(t, engine);
      // The pool for writes has one connection, which the transaction holds. Its reads are those of the rpcs.
      const read = (): Promise<unknown> => database.write.rows((sql) => sql("nullifiers"));
      const never = (): never => t.fail() as never;
      const services = [
        serve(ZkService, {
          getMerkleRoot: async () => (await read()) as never,
          getMerkleProof: never,
          getNullifier: never,
        }),
        serve(HealthService, {
          ...{ getHealth: never, listSubsystems: never, getLiveness: never, getReadiness: never },
          async *watchHealth() {
            yield (await read()) as never;
          },
        }),
      ];
      const errors: unknown[] = [];
      const gate = createEdge({ ...openSettings, rateLimitExempt: ["127.0.0.0/8"] });
      const onInternalError = (error: unknown): void => void errors.push(error);
      const { port } = await startServices(t, services, gate, { onInternalError }, edge);

      const plain = async (): Promise<void> => {
        const paths = [
          ["/zk/merkle-root", {}],
          ["/health/watch", { Accept: "text/event-stream" }],
          ["/health/watch", { Accept: "application/jsonl" }],
        ] as const;
        const check = async ([path, headers]: (typeof paths)[number]): Promise<void> => {
          const { status, headers: fields, text } = await ask(port, path, { headers });
          t.deepEqual([status, fields["retry-after"]], [503, "5"], path);
          t.deepEqual(
            JSON.parse(text),
            { success: false, error: message, errorCode: "OVERLOADED", retryAfter: 5 },
            path,
          );
        };
        await Promise.all(paths.map(check));
      };
      const jsonRpc = async (): Promise<void> => {
        const call = { jsonrpc: "2.0", id: 1, method: "zk.getMerkleRoot" };
        for (const body of [call, [call]]) {
          const { text } = await ask(port, "/", {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
          });
          const responses = [JSON.parse(text)].flat() as { error: { code: number; message: string; data: object } }[];
          t.is(responses.length, 1);
          const { code, message: shown, data } = responses[0]!.error;
          t.deepEqual([code, shown], [-32000, message]);
          t.like(data, { reason: "OVERLOADED", retryAfter: 5 });
        }
      };
      const rpc = async (protocol: AnyRpcProtocol): Promise<void> => {
        const overHttp2 = protocol.startsWith("gRPC") && !protocol.startsWith("gRPC-Web");
        const client = connectRpc(protocol, overHttp2 ? "HTTP/2 by prior knowledge" : "HTTP/1.1", { port });
        t.teardown(() => void client.close());
        const expected = { code: 14, message, reason: "OVERLOADED", retryAfterS: 5 };
        const unary = await t.throwsAsync(client.call(ZkService.method.getMerkleRoot, {}));
        t.deepEqual(readFailure(unary), expected, protocol);
        if (streamed.includes(protocol)) {
          t.deepEqual(readFailure(await t.throwsAsync(firstOf(client))), expected, `stream of ${protocol}`);
        }
      };
      await database.transaction(async (transaction) => {
        await transaction.rows((sql) => sql("nullifiers"));
        await Promise.all([plain(), jsonRpc(), ...protocols.map(rpc)]);
      });
      // The errors were temporary.
      t.deepEqual(await read(), []);
      t.deepEqual(
        errors.map((error) => (error as Error).name),
        errors.map(() => "KnexTimeoutError"),
      );
    });
  }
}

if (engines.names.includes("postgresql")) {
  test("a read that waits for slow reads is OVERLOADED, while the database completes other queries", async (t) => {
    const { read, transaction } = await engines.open(t, "postgresql");
    const slow = await transaction(async (db) => {
      await db.rows((sql) => sql.raw("SELECT pg_advisory_xact_lock(1)"));
      const readers = 8;
      const waiting = Array.from({ length: readers }, () =>
        read.rows((sql) => sql.raw("SELECT pg_advisory_xact_lock_shared(1)")),
      );
      let failure: unknown;
      read.rows((sql) => sql("nullifiers")).catch((error: unknown) => (failure = error));
      await until(async () => (await db.rows((sql) => sql.raw("SELECT 1"))).length === 1 && failure !== undefined);
      t.like(toRpcError(failure), { reason: "OVERLOADED", message, retryAfterS: 5 });
      return { waiting };
    });
    await Promise.all(slow.waiting);
    t.deepEqual(await read.rows((sql) => sql("nullifiers")), []);
  });
}

async function firstOf(client: RpcClient): Promise<unknown> {
  const messages = client.stream(HealthService.method.watchHealth, {}, new AbortController().signal);
  return await messages[Symbol.asyncIterator]().next();
}
