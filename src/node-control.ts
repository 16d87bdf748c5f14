/** The part of the composition root that the node's other processes and its operator talk to. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { chmod, link, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Failure } from "./errors.js";
import { messageOf } from "./health/process-errors.js";
import type { Config } from "./config.js";
import type { Gate } from "./rpc/gate.js";
import type { RpcListener } from "./rpc/listen.js";
import { createGrpcOnlyServer } from "./rpc/rpc-server.js";
import type { ServedService } from "./rpc/service.js";
import { StartError } from "./start-error.js";

/** What it needs. */
export interface NodeControlParts {
  readonly config: Pick<Config, "dataDir" | "controlSocket" | "controlPort">;
  readonly services: readonly ServedService[];
  readonly onInternalError: (error: unknown, requestId: string) => void;
  readonly drainMs: number;
  readonly onStop: (close: () => unknown) => void;
}

/** What every system takes; a longer one is cut without a word by some. */
const longestSocketPath = 103;

/** Path of the token in a data directory. */
export function controlTokenPath(dataDir: string): string {
  return join(dataDir, "control.token");
}

/**
 * Listens on the socket, and on the port where there is one.
 *
 * @returns the port; undefined where there is none.
 * @throws StartError
 */
export async function listenForControl(parts: NodeControlParts): Promise<number | undefined> {
  const { config, services, onInternalError, drainMs, onStop } = parts;
  const { controlSocket, controlPort, dataDir } = config;
  if (Buffer.byteLength(controlSocket) > longestSocketPath) {
    throw new StartError(
      `The path ${controlSocket} is too long for a socket; name a shorter one with --control-socket.`,
    );
  }
  await clearSocket(controlSocket);
  const overSocket = createGrpcOnlyServer({ services, gate: createOpenGate(), onInternalError });
  await bind(overSocket, { path: controlSocket }, controlSocket);
  onStop(() => overSocket.drain(drainMs));
  await chmod(controlSocket, 0o600);
  if (controlPort === undefined) {
    return undefined;
  }
  const gate = createTokenGate(await loadOrCreateToken(controlTokenPath(dataDir)));
  const overPort = createGrpcOnlyServer({ services, gate, onInternalError });
  const port = await bind(overPort, { host: "127.0.0.1", port: controlPort }, `port ${controlPort}`);
  onStop(() => overPort.drain(drainMs));
  return port;
}

async function bind(
  listener: RpcListener,
  address: Parameters<RpcListener["listen"]>[0],
  name: string,
): Promise<number> {
  try {
    return await listener.listen(address);
  } catch (error) {
    throw new StartError(`The control service cannot listen on ${name}: ${messageOf(error)}.`);
  }
}

/** What a killed node left behind is removed; where one answers, this is a second node in one data directory. */
async function clearSocket(path: string): Promise<void> {
  const isAnswered = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
  if (isAnswered) {
    throw new StartError(`Another node runs with ${path}; stop it, or choose another --data-dir.`);
  }
  await rm(path, { force: true });
}

/** Who can open the socket is the node's own user. */
function createOpenGate(): Gate {
  return {
    admit: (arrival) => ({
      arrival,
      startMs: performance.now(),
      caller: { address: arrival.remoteAddress, identity: undefined },
      headers: [],
    }),
    settle: () => undefined,
  };
}

function createTokenGate(token: string): Gate {
  const wanted = Buffer.from(`Bearer ${token}`);
  const open = createOpenGate();
  return {
    ...open,
    admit(arrival) {
      const given = Buffer.from(arrival.header("authorization") ?? "");
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
        throw new Failure("INVALID_TOKEN", "The header authorization must be Bearer and the token of the node.");
      }
      return open.admit(arrival);
    },
  };
}

/** Of several processes that make it at once, all get the same. */
async function loadOrCreateToken(path: string): Promise<string> {
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(draft, randomBytes(32).toString("hex"), { mode: 0o600, flag: "wx" });
    await link(draft, path).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        throw error;
      }
    });
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(path, "utf8")).trim();
}
