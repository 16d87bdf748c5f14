/** Measures the compiled codecs against protobuf-es, with a real health response. */
import { fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Bench } from "tinybench";
import { GetHealthResponseSchema } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { binaryEncoder } from "../../../src/rpc/codec/binary-encoder.js";
import { jsonEncoder } from "../../../src/rpc/codec/json-encoder.js";
import { askHttp2, grpcCall, openSession } from "../load/http2-client.js";
import type { BenchContext, Row } from "../row.js";

const schema = GetHealthResponseSchema;

/** Measures in this process. */
export async function benchCodecs({ node, seconds, say }: BenchContext): Promise<Row[]> {
  const session = await openSession(node.port);
  const { body } = await askHttp2(session, grpcCall("/gatehouse.health.v1.HealthService/GetHealth"));
  session.close();
  const bytes = body.subarray(5);
  const message = fromBinary(schema, bytes);
  const encode = binaryEncoder(schema);
  const encodeJson = jsonEncoder(schema);
  const pairs: readonly (readonly [string, string, () => unknown, () => unknown])[] = [
    ["encode binary", "toBinary", () => encode(message), () => toBinary(schema, message)],
    ["encode JSON", "toJsonString", () => encodeJson(message), () => toJsonString(schema, message)],
  ];
  const rows: Row[] = [];
  for (const [name, baseline, ours, theirs] of pairs) {
    say(name);
    const bench = new Bench({ time: seconds * 1000 }).add("ours", ours).add("theirs", theirs);
    await bench.run();
    const [our, their] = ["ours", "theirs"].map((task) => {
      const result = bench.getTask(task)!.result;
      if (!("latency" in result)) {
        throw new Error(`${name} could not be measured.`);
      }
      return result.latency.p50 * 1000;
    }) as [number, number];
    rows.push({ name, baseline, ratio: their / our, figures: { "p50 µs": our, "baseline p50 µs": their } });
  }
  return rows;
}
