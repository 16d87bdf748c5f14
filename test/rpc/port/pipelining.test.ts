/** Pipelined HTTP/1.1: few requests of a connection are parsed before their responses, and all are answered in order. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Exchange } from "../../../src/rpc/exchange/exchange.js";
import { maxPipelined } from "../../../src/rpc/port/pipelining.js";
import { freePermit, startTestPort } from "../../helpers/wire/test-port.js";
import { until } from "../../helpers/nodes/until.js";

/** Starts a port that responds to a request when the test says so, with its path. */
async function start(t: ExecutionContext, isTls = false) {
  const waiting: Exchange[] = [];
  const state = { isHeld: true, handled: 0, mostUnanswered: 0 };
  const answer = (exchange: Exchange): void =>
    exchange.send({ status: 200, headers: ["Content-Type", "text/plain"], body: `${exchange.path};` });
  const handle = async (exchange: Exchange): Promise<void> => {
    state.handled++;
    state.mostUnanswered = Math.max(state.mostUnanswered, exchange.connection.unanswered);
    const body = exchange.method === "POST" ? await exchange.readBytes(1_000_000, freePermit) : Buffer.alloc(0);
    if (body.length > 0) {
      exchange.send({ status: 200, headers: ["Content-Type", "text/plain"], body: `${exchange.path}=${body.length};` });
    } else if (state.isHeld) {
      waiting.push(exchange);
    } else {
      answer(exchange);
    }
  };
  const { open } = await startTestPort(t, isTls, (exchange) => void handle(exchange));
  return {
    state,
    open,
    release() {
      state.isHeld = false;
      waiting.splice(0).forEach(answer);
    },
  };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Reads responses until the end marker, and returns their bodies. */
async function readBodies(socket: Socket, end: string): Promise<string[]> {
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  await until(() => text.includes(`${end};`));
  return [...text.matchAll(/\r\n\r\n([^;]*);/g)].map(([, body]) => body!);
}

/** Has the port parse in pieces, as the first connection that sends too much does. */
async function alarm({ open, state }: Awaited<ReturnType<typeof start>>): Promise<Socket> {
  const first = open();
  const handledBefore = state.handled;
  first.write(get("/first"));
  await until(() => state.handled === handledBefore + 1);
  first.write(get("/first").repeat(maxPipelined));
  await until(() => state.handled > handledBefore + maxPipelined);
  return first;
}

/** Starts a port that responds at once, and parses in pieces. */
async function startInPieces(t: ExecutionContext) {
  const server = await start(t);
  server.release();
  const first = server.open();
  first.write(get("/first").repeat(50));
  await readBodies(first, "/first");
  return server;
}

for (const isTls of [false, true]) {
  const via = isTls ? "TLS" : "cleartext";
  test(`${via}: parses no more than ${maxPipelined} requests ahead, and answers all in order`, async (t) => {
    const server = await start(t, isTls);
    const early = server.open();
    early.write(get("/early"));
    await until(() => server.state.handled === 1);
    const first = await alarm(server);
    first.write(get("/first-but-late").repeat(3));
    const handledBefore = server.state.handled;
    const paths = Array.from({ length: 1_500 }, (_, i) => `/${i}`);
    const late = server.open();
    late.write(paths.map(get).join(""));
    early.write(paths.map(get).join(""));
    await until(() => server.state.handled === handledBefore + 2 * maxPipelined - 1);
    const bodies = [readBodies(early, "/1499"), readBodies(late, "/1499")];
    const ofFirst = readBodies(first, "/first-but-late");
    server.release();
    t.deepEqual(await Promise.all(bodies), [["/early", ...paths], paths]);
    t.deepEqual((await ofFirst).slice(0, maxPipelined + 2), [
      ...Array.from({ length: maxPipelined + 1 }, () => "/first"),
      "/first-but-late",
    ]);
    await until(() => server.state.handled === handledBefore + 2 * paths.length + 3);
  });
}

test("a connection that begins with several requests is parsed in pieces from its first one on", async (t) => {
  const server = await start(t);
  const socket = server.open();
  const paths = Array.from({ length: 1_500 }, (_, i) => `/${i}`);
  socket.write(paths.map(get).join(""));
  await until(() => server.state.handled === maxPipelined);
  const bodies = readBodies(socket, "/1499");
  server.release();
  t.deepEqual(await bodies, paths);
  t.is(server.state.mostUnanswered, maxPipelined);
});

test("parses bodies between requests, however the bytes are cut", async (t) => {
  const server = await startInPieces(t);
  const requests = Array.from({ length: 60 }, (_, i) =>
    i % 3 === 0 ? post(`/${i}`, "x\r\n\r\n".repeat(i + 1)) : get(`/${i}`),
  );
  const expected = requests.map((_, i) => (i % 3 === 0 ? `/${i}=${5 * (i + 1)}` : `/${i}`));
  const text = requests.join("");
  for (const cut of [1, 7, 100, 3_000, text.length]) {
    const socket = server.open().setNoDelay(true);
    const bodies = readBodies(socket, "/59");
    for (let i = 0; i < text.length; i += cut) {
      if (!socket.write(text.slice(i, i + cut))) {
        await once(socket, "drain");
      }
    }
    t.deepEqual(await bodies, expected, `${cut} bytes`);
    socket.destroy();
  }
});

test("a body that looks like ends of requests is not cut into them", async (t) => {
  const server = await startInPieces(t);
  const body = "\r\n\r\n".repeat(50_000);
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const chunked = `POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
  const socket = server.open();
  const bodies = readBodies(socket, "/end");
  socket.write(post("/announced", body) + chunked + get("/end"));
  t.deepEqual(await bodies, ["/announced=200000", "/chunked=200000", "/end"]);
});

test("reads on after a client that does not read its responses has read them", async (t) => {
  const server = await startInPieces(t);
  const padding = "p".repeat(3_000);
  const socket = server.open().pause();
  const paths = Array.from({ length: 3_000 }, (_, i) => `/${padding}${i}`);
  socket.write(paths.map(get).join(""));
  const handledBefore = server.state.handled;
  await until(() => server.state.handled > handledBefore);
  const bodies = await readBodies(socket.resume(), "2999");
  t.deepEqual(bodies, paths);
});
