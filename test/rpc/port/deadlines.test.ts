/** Deadlines: the error in each protocol and over each transport. */
import test from "ava";
import { sharedTargets } from "../../helpers/nodes/start-node.js";
import { grpcFields, readGrpcAnswer } from "../../helpers/wire/grpc-exchange.js";
import { grpcMessage } from "../../helpers/wire/http2-frames.js";
import type { PlainResponse } from "../../helpers/wire/plain-client.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { connectTransport, type TransportName, transports } from "../../helpers/wire/transports.js";

const targetOf = sharedTargets();
const watchHealth = "/gatehouse.health.v1.HealthService/WatchHealth";
const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const empty = grpcMessage(Buffer.alloc(0));
const emptyJson = grpcMessage(Buffer.from("{}"));
const names = Object.keys(transports) as TransportName[];

for (const name of names) {
  const send = async (headers: Record<string, string>, body: string | Buffer, path = watchHealth) => {
    const client = connectTransport(name, targetOf(name));
    try {
      return await client.ask(path, { method: "POST", headers, body });
    } finally {
      client.close();
    }
  };

  for (const [type, body] of [
    ["application/connect+json", emptyJson],
    ["application/connect+proto", empty],
  ] as const) {
    test(`Connect-Timeout-Ms ends a stream with an error, ${type} over ${name}`, async (t) => {
      const answer = await send({ "Content-Type": type, "Connect-Timeout-Ms": "500" }, body);
      t.is(answer.status, 200);
      t.is(endOfConnectStream(answer)?.code, "deadline_exceeded", answer.text);
    });
  }

  test(`rejects an invalid Connect-Timeout-Ms, over ${name}`, async (t) => {
    for (const timeout of ["abc", "-1", "1.5", "12345678901", "1e3", "0x10"]) {
      const stream = await send(
        { "Content-Type": "application/connect+json", "Connect-Timeout-Ms": timeout },
        emptyJson,
      );
      t.is(endOfConnectStream(stream)?.code, "invalid_argument", `${timeout}: ${stream.text}`);
      const unary = await send({ "Content-Type": "application/json", "Connect-Timeout-Ms": timeout }, "{}", getVersion);
      t.is(unary.status, 400, timeout);
      t.is((JSON.parse(unary.text) as { code: string }).code, "invalid_argument");
    }
    for (const timeout of ["10000", "9999999999"]) {
      const fine = await send({ "Content-Type": "application/json", "Connect-Timeout-Ms": timeout }, "{}", getVersion);
      t.is(fine.text, '{"version":"0.2.0"}');
    }
  });

  test(`grpc-timeout ends a stream of gRPC-Web with status 4, over ${name}`, async (t) => {
    for (const [type, body] of [
      ["application/grpc-web+proto", empty],
      ["application/grpc-web-text", empty.toString("base64")],
    ] as const) {
      const { status, text } = await send({ "Content-Type": type, "Grpc-Timeout": "1500m" }, body);
      t.is(status, 200);
      const whole = type.endsWith("text") ? decodeText(text) : text;
      t.regex(whole, /grpc-status: *4\r\n/i, whole);
    }
  });

  test(`accepts a timeout longer than timers support, over ${name}`, async (t) => {
    for (const [type, header, timeout, body] of [
      ["application/connect+json", "Connect-Timeout-Ms", "9999999999", emptyJson],
      ["application/grpc-web+proto", "Grpc-Timeout", "99999999H", empty],
    ] as const) {
      const client = connectTransport(name, targetOf(name));
      const headers = { "Content-Type": type, [header]: timeout };
      const asked = client.ask(watchHealth, { method: "POST", headers, body }).then(
        () => "ended",
        () => "cut",
      );
      const other = send({ "Content-Type": "application/connect+json", "Connect-Timeout-Ms": "1000" }, emptyJson);
      t.is(await Promise.race([asked, other.then(() => "goes on")]), "goes on", type);
      client.close();
    }
  });

  if (transports[name].http === "2") {
    test(`grpc-timeout ends a stream of gRPC with status 4, over ${name}`, async (t) => {
      const { alpn } = transports[name];
      const { port, ca } = targetOf(name);
      const connection = await connectRawHttp2(port, { ...(alpn && { alpn }), ...(ca && { ca }) });
      t.teardown(() => connection.close());
      const fields = grpcFields(watchHealth, { "grpc-timeout": "4000m" });
      const answer = readGrpcAnswer(await connection.request(fields, empty));
      t.is(answer.grpcStatus, 4);
      t.is(answer.messages.length, 1);
    });
  }
}

/** Returns the error of the end-stream message of Connect; undefined without an error. */
function endOfConnectStream({ text }: PlainResponse): { readonly code: string } | undefined {
  const end = text.lastIndexOf('{"error"');
  return end < 0 ? undefined : (JSON.parse(text.slice(end)) as { error: { code: string } }).error;
}

/** Decodes pieces of base64 that are padded separately. */
function decodeText(text: string): string {
  return (text.match(/[A-Za-z0-9+/]+={0,2}/g) ?? [])
    .map((piece) => Buffer.from(piece, "base64").toString("latin1"))
    .join("");
}
