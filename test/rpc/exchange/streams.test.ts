/** Rules of streams in every protocol, by both edges. The contract matrix checks them over every transport. */
import test from "ava";
import { connectTransport, type TransportName, transports } from "../../helpers/wire/transports.js";
import { grpcFields, readGrpcAnswer } from "../../helpers/wire/grpc-exchange.js";
import { grpcMessage } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { jsonPost } from "../../helpers/wire/plain-client.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";
import { streaming } from "../../contract/compare.js";
import { checkStreamRules } from "../../contract/stream-rules.js";

const nodes = { compiled: sharedTestNode({}), express: sharedTestNode({ edge: "express" }) };
const names: readonly TransportName[] = ["HTTP/1.1", "HTTP/2 by prior knowledge"];

for (const [edge, node] of Object.entries(nodes)) {
  for (const name of names) {
    const isHttp2 = transports[name].http === "2";
    for (const protocol of streaming.filter((each) => isHttp2 || !["gRPC", "gRPC by Connect"].includes(each))) {
      test(`rules of streams, ${protocol} over ${name}, ${edge} edge`, async (t) => {
        const client = connectTransport(name, node);
        t.teardown(() => client.close());
        await checkStreamRules(t, protocol, client);
      });
    }

    test(`HEAD has the headers of a stream and ends, ${name}, ${edge} edge`, async (t) => {
      const client = connectTransport(name, node);
      t.teardown(() => client.close());
      for (const accept of ["text/event-stream", "application/jsonl"]) {
        const { status, headers, text } = await client.ask("/health/watch", { method: "HEAD", headers: { accept } });
        t.deepEqual([status, text, headers["content-length"]], [200, "", undefined]);
        t.is(headers["content-type"], `${accept}; charset=utf-8`);
        t.is(headers["x-accel-buffering"], "no");
      }
      // The node has no blocks, so GET fails as well.
      t.is((await client.ask("/events", { method: "HEAD" })).status, 503);
    });

    test(`the weights of Accept select the form of a stream, ${name}, ${edge} edge`, async (t) => {
      const client = connectTransport(name, node);
      t.teardown(() => client.close());
      for (const [accept, type] of [
        ["application/jsonl;q=0", "text/event-stream"],
        ["application/jsonl;q=0.5, text/event-stream", "text/event-stream"],
        ["text/event-stream;q=0.5, application/x-ndjson", "application/jsonl"],
        ["application/jsonl, */*", "application/jsonl"],
        ["*/*", "text/event-stream"],
      ] as const) {
        const { headers } = await client.ask("/health/watch", { method: "HEAD", headers: { accept } });
        t.is(headers["content-type"], `${type}; charset=utf-8`, accept);
      }
    });

    test(`unary calls of gRPC-Web text follow the rules of all others, ${name}, ${edge} edge`, async (t) => {
      const client = connectTransport(name, node);
      t.teardown(() => client.close());
      const path = "/gatehouse.info.v1.InfoService/GetVersion";
      const body = grpcMessage(Buffer.alloc(0)).toString("base64");
      const statusOf = async (timeout: string | undefined, sent: string): Promise<unknown> => {
        const headers = { "content-type": "application/grpc-web-text", ...(timeout && { "grpc-timeout": timeout }) };
        return (await client.ask(path, { method: "POST", headers, body: sent })).headers["grpc-status"];
      };
      t.is(await statusOf("0m", body), "4");
      t.is(await statusOf("-1m", body), "3");
      t.is(await statusOf(undefined, ""), "3");
      t.is(await statusOf("604800000m", body), undefined);
    });
  }

  test(`a timeout of ten digits does not end a unary call of Connect, ${edge} edge`, async (t) => {
    const client = connectTransport("HTTP/1.1", node);
    t.teardown(() => client.close());
    const path = "/gatehouse.info.v1.InfoService/GetVersion";
    const { status } = await client.ask(path, jsonPost({}, { "Connect-Timeout-Ms": "2592000000" }));
    t.is(status, 200);
  });
}

test("the deadline ends a bidirectional stream whose client sends nothing", async (t) => {
  const connection = await connectRawHttp2(nodes.compiled.port);
  t.teardown(() => connection.close());
  const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const streamId = connection.open(grpcFields(path, { "grpc-timeout": "300m" }), { endStream: false });
  t.is(readGrpcAnswer(await connection.answer(streamId)).grpcStatus, 4);
});
