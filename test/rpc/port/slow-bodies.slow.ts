/** Bodies that arrive too slowly, with the usual time limits: the error in the form of each protocol. */
import test from "ava";
import { once } from "node:events";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { connect as connectHttp2, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { request as requestHttps } from "node:https";
import { startTestNode, startTlsNode } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
/** Paths of requests with a JSON body, with the status and a member of the error: JSON-RPC, and Connect. */
const jsonPaths = [
  ["/", 408, { errorCode: "REQUEST_TIMEOUT" }],
  [getVersion, 504, { code: "deadline_exceeded" }],
] as const;

async function textOf(stream: IncomingMessage | ClientHttp2Stream): Promise<string> {
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(stream, "end");
  return text;
}

async function start(t: Teardown, isTls: boolean): Promise<{ readonly url: string; readonly ca?: Buffer }> {
  if (!isTls) {
    return { url: (await startTestNode(t)).rpcUrl };
  }
  const { node, ca } = await startTlsNode(t);
  return { url: node.rpcUrl, ca };
}

/** Opens a stream, and sends a part of its body. */
function sendPart(session: ClientHttp2Session, path: string, type: string): ClientHttp2Stream {
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": type, te: "trailers" });
  stream.write("{");
  return stream;
}

for (const isTls of [false, true]) {
  const via = isTls ? "TLS" : "cleartext";

  test(`${via}, HTTP/1.1: a slow body is 408, 504 in Connect`, async (t) => {
    const { url, ca } = await start(t, isTls);
    await Promise.all(
      jsonPaths.map(async ([path, status, error]) => {
        const headers = { "content-type": "application/json", "content-length": 100 };
        const options = { method: "POST", headers, ca, agent: false };
        const request = (isTls ? requestHttps : requestHttp)(`${url}${path}`, options).on("error", () => undefined);
        t.teardown(() => request.destroy());
        request.write("{");
        const [response] = (await once(request, "response")) as [IncomingMessage];
        t.is(response.statusCode, status);
        t.like(JSON.parse(await textOf(response)), error);
      }),
    );
  });

  test(`${via}, HTTP/2: a slow body is 408, 504 in Connect, code 4 in gRPC, and the connection stays`, async (t) => {
    const { url, ca } = await start(t, isTls);
    const session = connectHttp2(url, { ca });
    t.teardown(() => session.destroy());
    const ended = jsonPaths.map(async ([path, status, error]) => {
      const stream = sendPart(session, path, "application/json");
      const [head] = (await once(stream, "response")) as [{ ":status": number }];
      t.is(head[":status"], status);
      t.like(JSON.parse(await textOf(stream)), error);
    });
    const grpc = sendPart(session, getVersion, "application/grpc");
    const [head] = (await once(grpc, "response")) as [Record<string, unknown>];
    t.is(head["grpc-status"], "4");
    await Promise.all(ended);
    const next = session.request({ ":path": "/version" });
    const [answer] = (await once(next, "response")) as [{ ":status": number }];
    t.is(answer[":status"], 200);
  });
}
