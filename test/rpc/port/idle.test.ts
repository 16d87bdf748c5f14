/** `--idle-timeout`: the time after which an idle connection is closed. */
import test from "ava";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { startTestNode, startTlsNode } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { connect as connectTls } from "node:tls";

/** Sends a request on a connection, and returns the head of the response once it has arrived. */
async function request(t: Teardown, socket: Socket): Promise<string> {
  t.teardown(() => socket.destroy());
  socket.write("GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
  const [response] = (await once(socket, "data")) as [Buffer];
  return response.toString();
}

test("an HTTP/1.1 connection is closed after the idle time, others stay", async (t) => {
  const short = { "idle-timeout": "1" };
  const [cleartext, tls] = [await startTestNode(t, short), await startTlsNode(t, short)];
  const usual = await startTestNode(t);
  const sessions = [connectHttp2(cleartext.rpcUrl), connectHttp2(tls.node.rpcUrl, { ca: tls.ca })];
  t.teardown(() => sessions.forEach((session) => session.destroy()));
  const statusOver = async (session: ClientHttp2Session): Promise<unknown> =>
    ((await once(session.request({ ":path": "/version" }).resume(), "response")) as [{ ":status": number }])[0][
      ":status"
    ];
  t.deepEqual(await Promise.all(sessions.map(statusOver)), [200, 200]);
  const stays = connect(usual.port, "127.0.0.1");
  const ends = [connect(cleartext.port, "127.0.0.1"), connectTls(tls.port, "127.0.0.1", { ca: tls.ca })];
  let hasEnded = false;
  stays.once("close", () => (hasEnded = true));
  t.regex(await request(t, stays), /^HTTP\/1\.1 200 [^]*\r\nKeep-Alive: timeout=60\r\n/);
  const closed = ends.map((socket) => once(socket, "close"));
  for (const socket of ends) {
    t.regex(await request(t, socket), /^HTTP\/1\.1 200 [^]*\r\nKeep-Alive: timeout=1\r\n/);
  }
  await Promise.all(closed);
  t.false(hasEnded);
  // HTTP/2 connections stay for at least 10 minutes.
  t.deepEqual(await Promise.all(sessions.map(statusOver)), [200, 200]);
});

test("a connection longer than the idle time of a load balancer is announced as such", async (t) => {
  const { port } = await startTestNode(t, { "idle-timeout": "620" });
  t.regex(await request(t, connect(port, "127.0.0.1")), /\r\nKeep-Alive: timeout=620\r\n/);
});
