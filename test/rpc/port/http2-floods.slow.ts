/** HTTP/2 floods that cost the client nothing: their connections are closed, and others are served meanwhile. */
import test, { type ExecutionContext } from "ava";
import { setTimeout as sleep } from "node:timers/promises";
import { grpcFields } from "../../helpers/wire/grpc-exchange.js";
import { encodeBlock, encodeInteger, type Field } from "../../helpers/wire/hpack.js";
import {
  flags,
  frameBytes,
  frameTypes,
  numberBytes,
  resetStreams,
  settingIds,
  settingsPayload,
} from "../../helpers/wire/http2-frames.js";
import { askJson } from "../../helpers/wire/plain-client.js";
import { connectRawHttp2 } from "../../helpers/wire/raw-http2.js";
import { startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { fileTeardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const fileScope = fileTeardown();
let node: Awaited<ReturnType<typeof startNodeProcess>>;

test.before(async () => {
  node = await startNodeProcess(fileScope, await temporaryDirectory(fileScope), ["--log-level", "warn"]);
});

/** Frames to send: first once, then repeatedly, with unused stream IDs. */
interface Flood {
  readonly title: string;
  readonly first?: Buffer;
  readonly again: (nextStreamId: () => number) => Buffer;
  /**
   * True if Node.js sends GOAWAY and stops reading, but leaves the socket open without an event. The connection then
   * costs no more than an idle one, and is closed like one.
   */
  readonly isLeftOpen?: true;
}

const get: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/version"],
  [":authority", "localhost"],
];
/** HPACK update of the dynamic table size to 0, which the node may require. */
const emptyTable = encodeInteger(0, 5, 0x20);
/** HPACK update of the dynamic table size to 1,024 bytes. */
const smallTable = encodeInteger(1_024, 5, 0x20);
const block = Buffer.concat([emptyTable, encodeBlock(get)]);
const rpcBlock = Buffer.concat([emptyTable, encodeBlock(grpcFields("/gatehouse.info.v1.InfoService/GetVersion"))]);
const rest = Buffer.concat([emptyTable, encodeBlock([["x-more", "a".repeat(1_000)]])]);

const open = (streamId: number, fields: Buffer, flagBits: number): Buffer =>
  frameBytes(frameTypes.headers, flagBits | flags.endHeaders, streamId, fields);

const floods: readonly Flood[] = [
  {
    title: "a header block that goes on and on (CONTINUATION)",
    first: frameBytes(frameTypes.headers, flags.endStream, 1, block),
    again: () => frameBytes(frameTypes.continuation, 0, 1, encodeBlock([["x-more", "a".repeat(1_000)]])),
  },
  {
    title: "a header block in pieces of nothing (CONTINUATION)",
    first: frameBytes(frameTypes.headers, flags.endStream, 1, block),
    again: () => frameBytes(frameTypes.continuation, 0, 1),
  },
  {
    title: "SETTINGS",
    again: () => frameBytes(frameTypes.settings, 0, 0, settingsPayload({ [settingIds.initialWindow]: 65_535 })),
  },
  { title: "empty SETTINGS", again: () => frameBytes(frameTypes.settings, 0, 0) },
  {
    title: "SETTINGS that open and shut all windows",
    again: () =>
      Buffer.concat(
        [1, 0].map((bytes) =>
          frameBytes(frameTypes.settings, 0, 0, settingsPayload({ [settingIds.initialWindow]: bytes })),
        ),
      ),
  },
  {
    title: "WINDOW_UPDATE by a byte",
    first: open(1, rpcBlock, 0),
    again: () => Buffer.concat(Array(4).fill(frameBytes(frameTypes.windowUpdate, 0, 1, numberBytes(1))) as Buffer[]),
  },
  { title: "PING", again: () => frameBytes(frameTypes.ping, 0, 0, Buffer.alloc(8)) },
  {
    title: "empty DATA",
    first: open(1, rpcBlock, 0),
    again: () => frameBytes(frameTypes.data, 0, 1),
  },
  {
    title: "streams that are reset at once",
    again: (next) => resetStreams(rpcBlock, next(), 1),
  },
  {
    title: "streams that the node is made to reset, by a window that grows by nothing",
    again: (next) => {
      const streamId = next();
      return Buffer.concat([
        open(streamId, block, flags.endStream),
        frameBytes(frameTypes.windowUpdate, 0, streamId, numberBytes(0)),
      ]);
    },
  },
  {
    title: "streams that the node is made to reset, by a window that grows too far",
    again: (next) => {
      const streamId = next();
      return Buffer.concat([
        open(streamId, rpcBlock, 0),
        frameBytes(frameTypes.windowUpdate, 0, streamId, numberBytes(0x7fffffff)),
      ]);
    },
  },
  {
    title: "streams that the node is made to reset, by data after their end",
    isLeftOpen: true,
    again: (next) => {
      const streamId = next();
      return Buffer.concat([open(streamId, block, flags.endStream), frameBytes(frameTypes.data, 0, streamId, rest)]);
    },
  },
  {
    title: "references to a large header field (HPACK)",
    first: open(
      1,
      Buffer.concat([
        smallTable,
        encodeBlock(get),
        // Literal with incremental indexing (RFC 7541).
        Buffer.from([0x40]),
        encodeBlock([["x-large", "a".repeat(900)]]).subarray(1),
      ]),
      flags.endStream,
    ),
    again: (next) =>
      open(
        next(),
        Buffer.concat([smallTable, encodeBlock(get), Buffer.alloc(2_000, encodeInteger(62, 7, 0x80))]),
        flags.endStream,
      ),
  },
];

/** Number of frames per write that exceeds any legitimate use. */
const perWrite = 5_000;
const mostWrites = 50;

for (const { title, first, again, isLeftOpen } of floods) {
  test.serial(`closes the connection: ${title}`, async (t) => {
    const { socket, closed, frames } = await connectRawHttp2(node.port, { replenish: false });
    t.teardown(() => socket.destroy());
    let streamId = first === undefined ? -1 : 1;
    const nextStreamId = (): number => (streamId += 2);
    if (first !== undefined) {
      socket.write(first);
    }
    let writes = 0;
    for (; writes < mostWrites && !socket.closed && socket.writable; writes++) {
      socket.write(Buffer.concat(Array.from({ length: perWrite }, () => again(nextStreamId))));
      await sleep(1);
      if (writes % 5 === 4) {
        await isFine(t);
      }
    }
    if (isLeftOpen) {
      // Up to version 24, Node.js sends GOAWAY and leaves the connection open; later versions close it.
      await until(() => socket.closed || frames.some(({ type }) => type === frameTypes.goAway));
      t.true(frames.filter(({ type }) => type === frameTypes.headers).length <= 1, "streams are answered still");
      await isFine(t);
      return;
    }
    const isCutOff = await Promise.race([closed.then(() => true), sleep(20_000, false)]);
    const goAway = frames.find(({ type }) => type === frameTypes.goAway);
    t.log(`after ${writes * perWrite} at most, ${goAway === undefined ? "without" : "with"} GOAWAY`);
    t.true(isCutOff, `still open after ${writes * perWrite}`);
    await isFine(t);
  });
}

/** Checks that another client is served, and that no error was uncaught. */
async function isFine(t: ExecutionContext): Promise<void> {
  const { status, errors } = await askJson<{ status: string; errors: Record<string, unknown> }>(node.port, "/health");
  t.is(status, "dormant");
  t.is(errors["uncaught_total"], 0);
  t.is(errors["unhandled_rejection_total"], 0);
}

test.serial("logs few lines about the floods", (t) => {
  const lines = node.stderr().split("\n").length;
  t.true(lines < 100, `${lines} lines`);
});
