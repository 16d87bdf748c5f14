/** Rules of the Connect protocol, over every transport. */
import test from "ava";
import { gzipSync } from "node:zlib";
import { version as packageVersion } from "../../../src/base/version.js";
import { sharedTargets } from "../../helpers/nodes/start-node.js";
import { grpcMessage } from "../../helpers/wire/http2-frames.js";
import type { PlainRequest } from "../../helpers/wire/plain-client.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import {
  connectTransport,
  type TransportClient,
  type TransportName,
  transports,
} from "../../helpers/wire/transports.js";

const targetOf = sharedTargets();

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const watchHealth = "/gatehouse.health.v1.HealthService/WatchHealth";
const getProgram = "/gatehouse.storage.v1.StorageService/GetProgram";
const version = `{"version":"${packageVersion}"}`;

for (const name of Object.keys(transports) as TransportName[]) {
  const connect = (t: Teardown): TransportClient => {
    const client = connectTransport(name, targetOf(name));
    t.teardown(() => client.close());
    return client;
  };
  const post = (contentType: string | undefined, body: string | Buffer): PlainRequest => ({
    method: "POST",
    headers: contentType === undefined ? {} : { "Content-Type": contentType },
    body,
  });

  test(`ignores unknown fields in JSON, over ${name}`, async (t) => {
    const client = connect(t);
    for (const body of ['{"unknown":1}', '{"nested":{"a":[1]},"version":null}']) {
      t.is((await client.ask(getVersion, post("application/json", body))).text, version);
    }
    const known = await client.ask(getProgram, post("application/json", '{"storageAddress":"stor-1","more":true}'));
    t.regex(known.text, /"invalid_argument".*stor-/);
  });

  test(`accepts content types in any case, over ${name}`, async (t) => {
    const client = connect(t);
    for (const type of ["APPLICATION/JSON", "Application/Json; Charset=UTF-8", "application/json;charset=utf-8"]) {
      const answer = await client.ask(getVersion, post(type, "{}"));
      t.is(answer.text, version, type);
      t.regex(answer.headers["content-type"]!, /^application\/json\b/);
    }
    const binary = await client.ask(getVersion, post("Application/Proto", Buffer.alloc(0)));
    t.is(binary.text, `\n\x05${packageVersion}`);
  });

  test(`rejects an unsupported content type with 415 and an error body, over ${name}`, async (t) => {
    const client = connect(t);
    for (const [path, type] of [
      [getVersion, "text/plain"],
      [getVersion, "application/xml"],
      [getVersion, undefined],
      [getVersion, "application/connect+json"],
      [getVersion, "application/jsonp"],
      [getVersion, "application/grpc-web+thrift"],
      [getVersion, "application/grpc-webfoo"],
      [watchHealth, "application/json"],
      [watchHealth, "application/proto"],
      [watchHealth, "application/connect+thrift"],
    ] as const) {
      const { status, text, headers } = await client.ask(path, post(type, "{}"));
      t.is(status, 415, `${path} ${type}: ${text}`);
      t.regex(headers["content-type"] ?? "", /^application\/json\b/, `${path} ${type}`);
      const body = JSON.parse(text) as { error?: string; errorCode?: string; code?: string; message?: string };
      t.truthy(body.error ?? body.message, text);
      t.truthy(body.errorCode ?? body.code, text);
    }
  });

  test(`serves reads by GET, over ${name}`, async (t) => {
    const client = connect(t);
    for (const query of [
      "?encoding=json&message=%7B%7D",
      "?encoding=json&message=%7B%7D&connect=v1",
      "?connect=v1&encoding=json&base64=1&message=e30",
      "?connect=v1&encoding=json&base64=1&message=e30%3D",
    ]) {
      const answer = await client.ask(`${getVersion}${query}`);
      t.is(answer.status, 200, answer.text);
      t.is(answer.text, version);
    }
    t.is((await client.ask(`${getVersion}?encoding=proto&message=`)).text, `\n\x05${packageVersion}`);
    t.is((await client.ask(`${getVersion}?encoding=xml&message=`)).status, 415);
    t.is((await client.ask(`${getVersion}?encoding=json&message=%7B`)).status, 400);
    const packed = gzipSync('{"storageAddress":"x"}').toString("base64url");
    const wrong = await client.ask(`${getProgram}?encoding=json&compression=gzip&base64=1&message=${packed}`);
    t.regex(wrong.text, /"storageAddress must be /, "a field has the name that its caller gives it");
    const submit = "/gatehouse.chain.v1.ChainService/SubmitTransaction?encoding=json&message=%7B%7D";
    t.is((await client.ask(submit)).status, 405);
    t.is((await client.ask(`${watchHealth}?encoding=json&message=%7B%7D`)).status, 405);
  });

  test(`accepts exactly one request message for a stream, over ${name}`, async (t) => {
    const client = connect(t);
    const message = grpcMessage(Buffer.from("{}"));
    for (const body of [Buffer.concat([message, message]), Buffer.alloc(0), message.subarray(0, 3)]) {
      const { status, text } = await client.ask(watchHealth, post("application/connect+json", body));
      t.is(status, 200);
      t.regex(text, /"error":\{"code":"(unimplemented|invalid_argument|internal)"/, `${body.length} bytes`);
    }
  });
}
