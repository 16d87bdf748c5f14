/**
 * Floods of prepared bytes: few system calls, no objects for each request, and responses that are counted or ignored, so
 * that a flood takes less of the processor than the node that it meets.
 */
import { connect as connectPlain, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { encodeBlock, type Field } from "../../../test/helpers/wire/hpack.js";
import {
  flags,
  frameBytes,
  frameTypes,
  noBytes,
  numberBytes,
  preface,
  settingIds,
  settingsPayload,
} from "../../../test/helpers/wire/http2-frames.js";
import { type Attack, type AttackCounts, attackerAddress, limitingRates, type Target } from "./attack.js";

/** Bounds of one attack: connections opened, and bytes sent. */
const [maxOpened, maxSentBytes] = [200_000, 16 * 1024 ** 3];
/** Pause in milliseconds before a closed connection is opened again. */
const reopenMs = 50;
/** Limit on the connections that are opened at a time, below the backlog of a listening socket, and the interval. */
const [openAtOnce, openEveryMs] = [100, 20];
/** Size of a write. */
const writeBytes = 64 * 1024;
/** Memory into which all sockets read what is ignored. */
const ignored = Buffer.alloc(64 * 1024);

/** Port to attack. */
export interface Door {
  readonly port: number;
  readonly tls: boolean;
  /** Certificate of the client, if the port requires one. */
  readonly credentials?: { readonly cert: string; readonly key: string };
}

/** Connections of a flood. */
export interface Connections {
  readonly count: number;
  /** Number of source addresses. Default: 1. */
  readonly addresses?: number;
  /** False to leave responses unread. Default: true. */
  readonly reads?: boolean;
}

/** Counts that all floods report. */
export interface FloodCounts {
  opened: number;
  closed: number;
  sentBytes: number;
  receivedBytes: number;
}

/** Creates an attack that sends prepared bytes, and so can meet any transport, or the control. */
export function floodAttack(
  harm: (target: Target, signal: AbortSignal) => Promise<AttackCounts>,
  rest: Pick<Attack, "flags" | "transport"> = {},
): Attack {
  return { ...rest, flags: [...limitingRates, ...(rest.flags ?? [])], isFlood: true, harm };
}

/** Returns the public port of a target. */
export const publicDoor = ({ port, transport }: Target): Door => ({ port, tls: transport.tls });

/** Connection of a flood. */
export interface FloodConnection {
  readonly socket: Socket;
  /** Number among the concurrent connections, from 0. */
  readonly slot: number;
  /** Called with received bytes, which are valid until the function returns. */
  onBytes: (bytes: Buffer) => void;
  /** Sends bytes. Returns false if the socket's buffer is full. */
  readonly send: (bytes: Buffer) => boolean;
}

/** Called once for each connection, as soon as it can send. */
type OnOpen = (connection: FloodConnection) => void;

/** Opens a connection from an attacker's address. */
function openDoor(door: Door, protocol: string, connections: Connections, slot: number, onBytes: (b: Buffer) => void) {
  const { addresses = 1, reads = true } = connections;
  const to = { port: door.port, host: "127.0.0.1", localAddress: attackerAddress(slot % addresses) };
  if (door.tls) {
    const options = { ...to, ...door.credentials, rejectUnauthorized: false, ALPNProtocols: [protocol] };
    const socket = connectTls(options).on("error", () => undefined);
    return reads ? socket.on("data", onBytes) : socket.pause();
  }
  const onread = { buffer: ignored, callback: (length: number) => (onBytes(ignored.subarray(0, length)), true) };
  const socket = connectPlain(reads ? { ...to, onread } : to).on("error", () => undefined);
  return reads ? socket : socket.pause();
}

/** Keeps a number of connections open until the signal is aborted. Opens those again that the node closes. */
export async function keepOpen(
  door: Door,
  signal: AbortSignal,
  connections: Connections,
  { protocol, onOpen }: { readonly protocol: "http/1.1" | "h2"; readonly onOpen: OnOpen },
): Promise<FloodCounts> {
  const counts: FloodCounts = { opened: 0, closed: 0, sentBytes: 0, receivedBytes: 0 };
  const keep = async (slot: number): Promise<void> => {
    await sleep(Math.floor(slot / openAtOnce) * openEveryMs);
    while (!signal.aborted && counts.opened < maxOpened && counts.sentBytes < maxSentBytes) {
      counts.opened++;
      const socket = openDoor(door, protocol, connections, slot, (bytes) => {
        counts.receivedBytes += bytes.length;
        connection.onBytes(bytes);
      });
      const connection: FloodConnection = {
        socket,
        slot,
        onBytes: () => undefined,
        send(bytes) {
          counts.sentBytes += bytes.length;
          return counts.sentBytes < maxSentBytes && socket.write(bytes);
        },
      };
      socket.once(door.tls ? "secureConnect" : "connect", () => onOpen(connection));
      const destroy = (): void => void socket.destroy();
      signal.addEventListener("abort", destroy, { once: true });
      await new Promise((resolve) => socket.once("close", resolve));
      signal.removeEventListener("abort", destroy);
      counts.closed += signal.aborted ? 0 : 1;
      await sleep(reopenMs);
    }
  };
  await Promise.all(Array.from({ length: connections.count }, (_, slot) => keep(slot)));
  return counts;
}

/** Name of the count of bytes that a flood has sent. */
export const sentMib = "sent MiB";

/** Returns the counts with the names of the output. */
export function countsOf({ opened, closed, sentBytes, receivedBytes }: FloodCounts): AttackCounts {
  const mib = 1024 ** 2;
  return {
    "connections opened": opened,
    "of these cut": closed,
    [sentMib]: sentBytes / mib,
    "received MiB": receivedBytes / mib,
  };
}

/** Fills a write with copies of a request. */
export function repeated(request: string | Buffer): Buffer {
  const bytes = Buffer.from(request as string);
  return Buffer.concat(Array.from({ length: Math.max(1, Math.floor(writeBytes / bytes.length)) }, () => bytes));
}

/** Pipelines requests over HTTP/1.1: writes in rotation, and as much as the sockets accept. */
export async function pipeline(
  door: Door,
  signal: AbortSignal,
  writes: readonly Buffer[],
  connections: Connections,
): Promise<AttackCounts> {
  const onOpen: OnOpen = ({ socket, slot, send }) => {
    let next = slot;
    const write = (): void => {
      if (signal.aborted || socket.destroyed) {
        return;
      }
      // The next write waits for a tick, because the kernel may accept each at once.
      if (send(writes[next++ % writes.length]!)) {
        setImmediate(write);
      } else {
        socket.once("drain", () => setImmediate(write));
      }
    };
    write();
  };
  return countsOf(await keepOpen(door, signal, connections, { protocol: "http/1.1", onOpen }));
}

/** Sends each connection some bytes, and then nothing more, or a byte at an interval. */
export async function sendAndWait(
  door: Door,
  signal: AbortSignal,
  beginning: Buffer,
  connections: Connections,
  byteEveryMs?: number,
): Promise<AttackCounts> {
  const open = new Set<Socket>();
  const onOpen: OnOpen = ({ socket, send }) => {
    open.add(socket);
    send(beginning);
    const dribble = byteEveryMs === undefined ? undefined : setInterval(() => send(oneByte), byteEveryMs);
    socket.once("close", () => {
      clearInterval(dribble);
      open.delete(socket);
    });
  };
  const keeping = keepOpen(door, signal, connections, { protocol: "http/1.1", onOpen });
  const held = await atAbort(signal, () => open.size);
  return { ...countsOf(await keeping), "requests open": held };
}

const oneByte = Buffer.from("a");
const statusOk = Buffer.from("HTTP/1.1 200");

/** Sends a request over each connection, closes it at the first byte of the response, and opens it again. */
export async function openAndLeave(
  door: Door,
  signal: AbortSignal,
  request: Buffer,
  connections: Connections,
): Promise<AttackCounts> {
  let [left, accepted] = [0, 0];
  const onOpen: OnOpen = (connection) => {
    connection.onBytes = (bytes) => {
      left++;
      accepted += bytes.subarray(0, statusOk.length).equals(statusOk) ? 1 : 0;
      connection.socket.destroy();
    };
    connection.send(request);
  };
  const counts = await keepOpen(door, signal, connections, { protocol: "http/1.1", onOpen });
  return { ...countsOf(counts), "responses left": left, "of these with status 200": accepted };
}

/** Frames of a stream, prepared for any stream number. */
export interface StreamFrames {
  readonly bytes: Buffer;
  /** Positions of the stream number. */
  readonly idsAt: readonly number[];
}

/** Prepares the frames that open a stream. Without an end, the stream's request stays unfinished. */
export function streamOf(fields: readonly Field[], body: Buffer = noBytes, ends = true): StreamFrames {
  const endFlag = ends ? flags.endStream : 0;
  const hasBody = body.length > 0;
  const head = frameBytes(frameTypes.headers, flags.endHeaders | (hasBody ? 0 : endFlag), 0, encodeBlock(fields));
  const data = hasBody ? frameBytes(frameTypes.data, endFlag, 0, body) : noBytes;
  const idAt = 5;
  return { bytes: Buffer.concat([head, data]), idsAt: hasBody ? [idAt, head.length + idAt] : [idAt] };
}

/** Returns copies of the frames for streams from a number on. */
export function numberStreams({ bytes, idsAt }: StreamFrames, firstId: number, count: number): Buffer {
  const all = Buffer.alloc(bytes.length * count);
  for (let i = 0; i < count; i++) {
    bytes.copy(all, i * bytes.length);
    idsAt.forEach((at) => all.writeUInt32BE(firstId + 2 * i, i * bytes.length + at));
  }
  return all;
}

/** Sessions of a flood over HTTP/2. */
export interface Sessions extends Connections {
  /** Number of open streams of each connection. */
  readonly streams: number;
  /** Pause in milliseconds before streams that ended are replaced. Default: none. */
  readonly pauseMs?: number;
}

/** Largest flow-control window (RFC 9113, section 6.9). */
const maxWindow = 2 ** 31 - 1;
const defaultWindow = 65_535;
const sessionStart = Buffer.concat([
  preface,
  frameBytes(frameTypes.settings, 0, 0, settingsPayload({ [settingIds.initialWindow]: maxWindow })),
  frameBytes(frameTypes.windowUpdate, 0, 0, numberBytes(maxWindow - defaultWindow)),
]);
const settingsAck = frameBytes(frameTypes.settings, flags.ack, 0);

/**
 * Keeps a number of streams open on each connection over HTTP/2, and opens another for each that ends. Without reading
 * responses, opens streams as fast as the socket accepts them.
 */
export async function openStreams(
  { isControl = false }: Target,
  door: Door,
  signal: AbortSignal,
  stream: StreamFrames,
  sessions: Sessions,
): Promise<AttackCounts> {
  // A control never responds, so streams to it never end.
  const isBlind = isControl || sessions.reads === false;
  let [ended, rejected, held] = [0, 0, 0];
  const onOpen: OnOpen = (connection) => {
    const { socket, send } = connection;
    let [nextId, open, isBlocked] = [1, 0, false];
    const fill = (): void => {
      const count = isBlind ? Math.ceil(writeBytes / stream.bytes.length) : sessions.streams - open;
      if (signal.aborted || socket.destroyed || isBlocked || count <= 0) {
        return;
      }
      const isAccepted = send(numberStreams(stream, nextId, count));
      nextId += 2 * count;
      open += count;
      held += count;
      if (!isAccepted) {
        isBlocked = true;
        socket.once("drain", () => {
          isBlocked = false;
          setImmediate(fill);
        });
      } else if (isBlind) {
        setImmediate(fill);
      }
    };
    const scan = createFrameScanner((type, flagBits) => {
      const isReset = type === frameTypes.reset;
      if (isReset || ((type === frameTypes.data || type === frameTypes.headers) && flagBits & flags.endStream)) {
        open--;
        held--;
        ended++;
        rejected += isReset ? 1 : 0;
      } else if (type === frameTypes.settings && !(flagBits & flags.ack)) {
        send(settingsAck);
      } else if (type === frameTypes.goAway) {
        socket.destroy();
      }
    });
    let refill: NodeJS.Timeout | undefined;
    const fillLater = (): void => {
      refill ??= setTimeout(() => {
        refill = undefined;
        fill();
      }, sessions.pauseMs);
    };
    connection.onBytes = (bytes) => {
      scan(bytes);
      if (!isBlind) {
        (sessions.pauseMs === undefined ? fill : fillLater)();
      }
    };
    socket.once("close", () => {
      clearTimeout(refill);
      held -= open;
    });
    send(sessionStart);
    fill();
  };
  const keeping = keepOpen(door, signal, sessions, { protocol: "h2", onOpen });
  const open = await atAbort(signal, () => held);
  return { ...countsOf(await keeping), "streams ended": ended, "of these reset": rejected, "streams open": open };
}

/** Resolves to a value at the moment at which the attack ends. */
async function atAbort<T>(signal: AbortSignal, value: () => T): Promise<T> {
  return await new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(value()), { once: true });
  });
}

/** Creates a function that reads the heads of incoming frames, and skips their payloads without copies. */
export function createFrameScanner(onFrame: (type: number, flagBits: number) => void): (bytes: Buffer) => void {
  const headBytes = 9;
  const head = Buffer.alloc(headBytes);
  let [filled, skipBytes] = [0, 0];
  return (bytes) => {
    for (let at = 0; at < bytes.length;) {
      if (skipBytes > 0) {
        const skipped = Math.min(skipBytes, bytes.length - at);
        skipBytes -= skipped;
        at += skipped;
        continue;
      }
      const copied = bytes.copy(head, filled, at, at + headBytes - filled);
      filled += copied;
      at += copied;
      if (filled === headBytes) {
        filled = 0;
        skipBytes = head.readUIntBE(0, 3);
        onFrame(head[3]!, head[4]!);
      }
    }
  };
}
