import test from "ava";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../helpers/nodes/until.js";
import { awaitFirstRecord, detectHttpVersion } from "../../../src/rpc/port/protocol-detection.js";

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Starts a port that responds to HTTP/1.1 with the path, and to HTTP/2 with all received bytes as text. */
async function listen(t: { teardown(fn: () => unknown): void }, decideWithinMs = 5000) {
  const server = createServer((request, response) => response.end(`http1 ${request.method} ${request.url}`));
  const http2: string[] = [];
  const [acceptHttp1] = server.listeners("connection") as ((socket: Socket) => void)[];
  const acceptHttp2 = (socket: Socket): void => {
    socket.on("data", (bytes: Buffer) => {
      http2.push(bytes.toString("latin1"));
      socket.write("http2");
    });
  };
  server.removeAllListeners("connection").on("connection", (socket) => {
    detectHttpVersion(socket, (accepted) => acceptHttp1!.call(server, accepted), acceptHttp2, decideWithinMs);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const open = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    t.teardown(() => socket.destroy());
    await once(socket, "connect");
    return socket.setNoDelay(true).setEncoding("latin1");
  };
  return { open, http2 };
}

async function byteByByte(socket: Socket, text: string): Promise<void> {
  for (const byte of text) {
    socket.write(byte, "latin1");
    await sleep(2);
  }
}

async function answer(socket: Socket): Promise<string> {
  const [text] = (await once(socket, "data")) as [string];
  return text;
}

test("passes a request in one chunk to HTTP/1.1", async (t) => {
  const { open } = await listen(t);
  const socket = await open();
  socket.write("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  t.regex(await answer(socket), /http1 GET \/a$/);
  socket.write("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  t.regex(await answer(socket), /http1 GET \/b$/);
});

test("passes a method that starts like the preface to HTTP/1.1, also byte by byte", async (t) => {
  const { open } = await listen(t);
  const socket = await open();
  void byteByByte(socket, "PROPFIND /p HTTP/1.1\r\nHost: x\r\n\r\n");
  t.regex(await answer(socket), /http1 PROPFIND \/p$/);
});

test("passes the complete preface to HTTP/2, also byte by byte", async (t) => {
  const { open, http2 } = await listen(t);
  const socket = await open();
  const reply = answer(socket);
  await byteByByte(socket, preface);
  t.is(await reply, "http2");
  t.is(http2.join(""), preface);
});

test("keeps the bytes after the preface in the same packet", async (t) => {
  const { open, http2 } = await listen(t);
  const socket = await open();
  socket.write(`${preface}settings`);
  t.is(await answer(socket), "http2");
  t.is(http2.join(""), `${preface}settings`);
});

test("closes a silent connection after the time limit, also within the preface", async (t) => {
  const { open } = await listen(t, 100);
  const silent = await open();
  const partial = await open();
  partial.write("PRI * HTT");
  // Closing a socket with unread bytes resets it, which is an error at the client.
  const closed = (socket: Socket) =>
    new Promise((resolve) => socket.on("error", resolve).resume().once("close", resolve));
  await Promise.all([closed(silent), closed(partial)]);
  t.is(silent.bytesRead + partial.bytesRead, 0);
});

test("leaves no listeners if a client ends or resets before detection", async (t) => {
  const { open } = await listen(t);
  (await open()).end();
  (await open()).resetAndDestroy();
  const socket = await open();
  socket.write("PRI");
  socket.end();
  await once(socket.resume(), "close");
  const next = await open();
  next.write("GET /after HTTP/1.1\r\nHost: x\r\n\r\n");
  t.regex(await answer(next), /http1 GET \/after$/);
});

/** Starts a port that waits for first records. Returns a function that opens a connection, and the received records. */
async function listenForRecords(t: { teardown(fn: () => unknown): void }, withinMs = 5000) {
  const records: string[] = [];
  const server = createTcpServer((socket) =>
    awaitFirstRecord(socket, withinMs, () => records.push((socket.read() as Buffer).toString("hex"))),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const open = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").setNoDelay(true);
    t.teardown(() => socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  return { open, records };
}

test("a TLS connection is passed on with its first record complete, whatever its pieces", async (t) => {
  const { open, records } = await listenForRecords(t);
  const hello = "1603010004010203ff";
  const socket = await open();
  for (const byte of Buffer.from(hello, "hex").subarray(0, -1)) {
    socket.write(Buffer.of(byte));
    await sleep(2);
  }
  await sleep(50);
  t.deepEqual(records, []);
  socket.write(Buffer.of(0xff, 0x17));
  await until(() => records.length === 1);
  t.deepEqual(records, [`${hello}17`]);
});

test("a long first record is passed on complete, and at once what is none", async (t) => {
  const { open, records } = await listenForRecords(t);
  const long = Buffer.concat([Buffer.from("1603014000", "hex"), Buffer.alloc(0x4000, 7)]);
  const socket = await open();
  socket.write(long.subarray(0, 16_000));
  await sleep(50);
  t.deepEqual(records, []);
  socket.write(long.subarray(16_000));
  await until(() => records.length === 1);
  t.is(records[0], long.toString("hex"));
  for (const [i, text] of ["474554", "1603014001", "16030140017f"].entries()) {
    (await open()).write(Buffer.from(text, "hex"));
    await until(() => records.length === i + 2);
    t.is(records.at(-1), text);
  }
});

test("a connection without a complete first record is closed after the time limit", async (t) => {
  const { open, records } = await listenForRecords(t, 100);
  const socket = await open();
  socket.write(Buffer.from("1603010004", "hex"));
  await new Promise((resolve) => socket.on("error", resolve).resume().once("close", resolve));
  t.deepEqual(records, []);
});
