/** Bodies that arrive too slowly end with an error. Slow, since the limit counts seconds. */
import test from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { startEdgeServer } from "../../helpers/nodes/edge-server.js";
import { openFrom, sessionFrom } from "../../helpers/wire/plain-client.js";
import { until } from "../../helpers/nodes/until.js";

const path = "/gatehouse.zk.v1.ZkService/GetMerkleRoot";
/** Bytes for each tenth of a second. */
const [tooFew, enough] = [10, 400];
/** Duration of a body that arrives fast enough: several checks. */
const seconds = 16;
const length = enough * seconds * 10;

/** Sends a JSON body of spaces in small pieces, until `isOver`. */
async function dribble(write: (text: string) => void, bytes: number, isOver: () => boolean): Promise<void> {
  for (let sent = 0; sent + bytes < length && !isOver(); sent += bytes) {
    write(" ".repeat(bytes));
    await sleep(100);
  }
}

for (const [name, bytes, expected] of [
  ["ends a body with less than 1 KiB a second", tooFew, /did not arrive in time/],
  ["reads a body with 4 KiB a second to its end", enough, /\{\}/],
] as const) {
  test(`${name}, over HTTP/1.1`, async (t) => {
    const server = await startEdgeServer(t);
    const socket = openFrom(t, server.port, "127.0.0.5");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const chunk = (piece: string): string => `${piece.length.toString(16)}\r\n${piece}\r\n`;
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    await dribble(
      (piece) => socket.write(chunk(piece)),
      bytes,
      () => text !== "",
    );
    if (bytes === enough) {
      t.is(text, "", "the body is still arriving");
      socket.write(`${chunk("{}")}0\r\n\r\n`);
      await until(() => server.edge.stats().activeRequests === 1);
      server.release();
    }
    await until(() => expected.test(text));
    t.pass();
  });

  test(`${name}, over HTTP/2`, async (t) => {
    const server = await startEdgeServer(t);
    const headers = { ":method": "POST", ":path": path, "content-type": "application/json" };
    const stream = sessionFrom(t, server.port, "127.0.0.5")
      .request(headers)
      .on("error", () => undefined);
    let text = "";
    stream.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    await dribble(
      (piece) => stream.write(piece),
      bytes,
      () => text !== "",
    );
    if (bytes === enough) {
      t.is(text, "", "the body is still arriving");
      stream.end("{}");
      await until(() => server.edge.stats().activeRequests === 1);
      server.release();
    }
    await until(() => expected.test(text));
    t.pass();
  });
}
