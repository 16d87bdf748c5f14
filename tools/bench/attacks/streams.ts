/** Attacks with HTTP/2 streams that stay open, or whose responses are not read. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type Settings } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { grpcMessage } from "../../../test/helpers/wire/http2-frames.js";
import { type Attacks, attackerAddress, type AttackCounts, openSocket } from "./attack.js";
import { type Call, callOf, headersOf, readProgram } from "./calls.js";

/** Streams to hold open. */
interface HeldStreams {
  readonly connections: number;
  readonly streamsEach: number;
  /** Calls to use in rotation. */
  readonly calls: readonly Call[];
  readonly settings?: Settings;
  /** Number of source addresses of the connections. */
  readonly addresses?: number;
  /** True to read the responses. */
  readonly reads: boolean;
}

/** Limit on the streams that are opened at a time, and the interval, so that opening them is not a flood. */
const [openAtOnce, openEveryMs] = [100, 20];

/** Connection with its streams. Reopened when it is closed. */
interface Connection {
  readonly session: ClientHttp2Session;
  readonly open: Set<ClientHttp2Stream>;
}

/** Holds streams open until the signal is aborted. Reopens streams that end. */
async function holdStreams(port: number, signal: AbortSignal, holding: HeldStreams): Promise<AttackCounts> {
  const { connections, streamsEach, calls, settings = {}, addresses = 1, reads } = holding;
  const answered = new WeakSet<ClientHttp2Stream>();
  const connected: Connection[] = [];
  let [opened, ended, cut] = [0, 0, 0];
  const connectAs = (i: number): Connection => {
    const createConnection = () => openSocket(port, attackerAddress(i % addresses));
    const session = connect("http://127.0.0.1", { createConnection, settings }).on("error", () => undefined);
    session.once("close", () => cut++);
    return { session, open: new Set() };
  };
  const openStream = ({ session, open }: Connection): void => {
    const call = calls[opened++ % calls.length]!;
    const stream = session.request(headersOf(call)).on("error", () => undefined);
    open.add(stream);
    stream.once("response", ({ ":status": status, "grpc-status": failed }) => {
      if (String(status) === "200" && failed === undefined) {
        answered.add(stream);
      }
    });
    stream.once("close", () => {
      ended++;
      open.delete(stream);
    });
    if (reads) {
      stream.resume();
    }
    // Do not end the request: a client stream stays open, and for other methods the one message suffices.
    stream.write(call.body);
    if (!call.path.includes("reflection")) {
      stream.end();
    }
  };
  while (!signal.aborted) {
    let left = openAtOnce;
    for (let i = 0; i < connections && left > 0; i++) {
      if (connected[i] === undefined || connected[i]!.session.destroyed || connected[i]!.session.closed) {
        connected[i] = connectAs(i);
        left -= 5;
      }
      for (; connected[i]!.open.size < streamsEach && left > 0; left--) {
        openStream(connected[i]!);
      }
    }
    await sleep(openEveryMs);
  }
  const open = connected.flatMap((connection) => [...connection.open]);
  return {
    "streams held": open.filter((stream) => answered.has(stream)).length,
    "streams ended": ended,
    "connections cut": cut,
  };
}

const watches = [
  { path: "/grpc.health.v1.Health/Watch", body: grpcMessage(Buffer.alloc(0)) },
  callOf(HealthService.method.watchHealth, {}),
  callOf(ServerReflection.method.serverReflectionInfo, { messageRequest: { case: "listServices", value: "*" } }),
];

function heldStreams(count: number, connections: number): Attacks[string] {
  const holding = { connections, streamsEach: count / connections, calls: watches, reads: true };
  return { harm: ({ port }, signal) => holdStreams(port, signal, holding) };
}

export const streamAttacks: Attacks = {
  "2,000 held streams": heldStreams(2_000, 20),
  "10,000 held streams": heldStreams(10_000, 100),
  "1,000 slow readers, gRPC, window 0": {
    harm: ({ port, program }, signal) =>
      holdStreams(port, signal, {
        connections: 4,
        streamsEach: 250,
        calls: [readProgram(program)],
        settings: { initialWindowSize: 0 },
        reads: false,
      }),
  },
  "1,000 slow readers, gRPC, 20 addresses": {
    harm: ({ port, program }, signal) =>
      holdStreams(port, signal, {
        connections: 20,
        streamsEach: 50,
        calls: [readProgram(program)],
        addresses: 20,
        reads: false,
      }),
  },
  "150 slow readers of ListBlocks": {
    harm: ({ port }, signal) =>
      holdStreams(port, signal, {
        connections: 2,
        streamsEach: 75,
        calls: [callOf(ChainService.method.listBlocks, { fromNumber: 1n })],
        reads: false,
      }),
  },
};
