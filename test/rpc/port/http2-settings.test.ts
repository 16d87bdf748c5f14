/** HTTP/2 settings of the node, which common clients must support. */
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import test from "ava";
import { once } from "node:events";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { frameTypes, settingIds } from "../../helpers/wire/http2-frames.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { sharedTestNode } from "../../helpers/nodes/start-node.js";
import { until } from "../../helpers/nodes/until.js";

const node = sharedTestNode({});
const usualTableBytes = 4_096;

test("keeps the default header table size, which nginx requires", async (t) => {
  const client = await connectRawHttp2(node.port);
  t.teardown(() => client.close());
  const { frames } = client;
  await until(() => frames.some(({ type }) => type === frameTypes.settings));
  const { payload } = frames.find(({ type }) => type === frameTypes.settings)!;
  const settings = new Map<number, number>();
  for (let at = 0; at < payload.length; at += 6) {
    settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }
  t.true(settings.size > 0);
  t.is(settings.get(settingIds.headerTableSize) ?? usualTableBytes, usualTableBytes);
});

/** The limits of docs/interface.md. An entry counts as its name, its value and 32 bytes. */
const [maxFields, maxListBytes, entryBytes] = [100, 16 * 1024, 32];
/** Fields of a request besides those of the test, at most: pseudo-headers, and what clients add. */
const ownFields = 20;

const fields = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "1"]));
const bytes = (count: number): Record<string, string> => ({ x: "a".repeat(count - entryBytes - 1) });

/** Sends a request, and returns the status of the response, or the error code of the reset. */
async function ask(session: ClientHttp2Session, headers: Record<string, string>): Promise<unknown> {
  const stream = session.request({ ":path": "/version", ...headers });
  let answered: unknown;
  stream.on("error", () => undefined).on("response", (head) => (answered = head[":status"]));
  await new Promise<void>((resolve) => stream.resume().once("close", resolve));
  return answered ?? stream.rstCode;
}

test("resets streams above the limits of headers, in Node.js' client, and serves others of the connection", async (t) => {
  const session = connect(`http://127.0.0.1:${node.port}`);
  t.teardown(() => session.destroy());
  const [settings] = (await once(session, "remoteSettings")) as [{ maxHeaderListSize: number }];
  t.is(settings.maxHeaderListSize, maxListBytes);
  const pseudoHeaders = 4;
  t.is(await ask(session, fields(maxFields - pseudoHeaders)), 200);
  t.is(await ask(session, fields(maxFields - pseudoHeaders + 1)), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  t.is(await ask(session, bytes(maxListBytes - 10 * 2 * entryBytes)), 200);
  t.is(await ask(session, bytes(maxListBytes)), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  t.is(await ask(session, {}), 200);
});

test("resets streams above the limits of headers, which is RESOURCE_EXHAUSTED in grpc-js", async (t) => {
  const client = new Client(`127.0.0.1:${node.port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const call = async (headers: Record<string, string>): Promise<status> => {
    const metadata = new Metadata();
    Object.entries(headers).forEach(([name, value]) => metadata.set(name, value));
    const path = "/gatehouse.info.v1.InfoService/GetVersion";
    const pass = (message: Buffer): Buffer => message;
    return await new Promise((resolve) =>
      client.makeUnaryRequest(path, pass, pass, Buffer.alloc(0), metadata, (error: ServiceError | null) =>
        resolve(error?.code ?? status.OK),
      ),
    );
  };
  t.is(await call(fields(maxFields - ownFields)), status.OK);
  t.is(await call(fields(maxFields)), status.RESOURCE_EXHAUSTED);
  t.is(await call(bytes(maxListBytes - ownFields * 2 * entryBytes)), status.OK);
  t.is(await call(bytes(maxListBytes)), status.RESOURCE_EXHAUSTED);
  t.is(await call({}), status.OK);
});
