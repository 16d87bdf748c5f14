/** A server of all protocols with its own admission gate. Tests set its limits and read its counts. */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import type { AccessLine } from "../../../src/edge/request-reporter.js";
import { createEdge, type Edge, type EdgeSettings } from "../../../src/edge/edge.js";
import type { Arrival, Connection } from "../../../src/rpc/gate.js";
import { createRpcServer, type RpcServerDeps } from "../../../src/rpc/server/rpc-server.js";
import { serve, type ServedService } from "../../../src/rpc/service.js";
import { noLagLimit } from "./no-lag-limit.js";
import type { Teardown } from "./teardown.js";
import { buildApplication } from "../../../src/express/application.js";

/** The server under test. */
export type EdgeServer = Awaited<ReturnType<typeof startEdgeServer>>;

/** Settings of an edge without limits and trusted proxies. */
export const openSettings: EdgeSettings = {
  trustedProxies: [],
  identityMode: "signed",
  identityForm: "any",
  network: undefined,
  rateLimitPerMinute: 0,
  rateLimitExempt: [],
  onAccess: () => undefined,
  onUntrustedForwarding: () => undefined,
  overload: noLagLimit,
};

/** Creates a request on a connection of {@link Edge.connect}. */
export const arriveOn = (connection: Connection, more: Partial<Arrival> = {}): Arrival => ({
  ...{ requestId: "a", connection, isIncomplete: false },
  ...{ header: () => undefined, onClose: () => undefined, abort: () => undefined },
  ...more,
});

/** Returns the path of a response with at least this many bytes. */
export const largeAnswer = (bytes: number): string => `/zk/nullifier/${numberedHash(bytes)}`;
/** Path of a response that waits for `release`. */
export const waitingAnswer = "/zk/merkle-root";

/** Starts the server. `first` handles HTTP/1.1 requests first. */
export async function startEdgeServer(
  t: Teardown,
  settings: Partial<EdgeSettings> = {},
  first: "compiled" | "express" = "compiled",
) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const access: AccessLine[] = [];
  const outcomes: string[] = [];
  const errors: unknown[] = [];
  const edge = createEdge({
    ...openSettings,
    rateLimitExempt: ["127.0.0.0/8"],
    onAccess: (line) => access.push(line),
    onFinished: ({ code }) => outcomes.push(code),
    ...settings,
  });
  const never = (): never => {
    throw new Error("not called");
  };
  const services = [
    serve(ZkService, {
      getMerkleRoot: async () => {
        await released;
        return {};
      },
      getMerkleProof: never,
      getNullifier: ({ nullifierHash }) => ({ nullifierHash: randomText(Number(nullifierHash)) }),
    }),
    serve(HealthService, {
      getHealth: () => ({}),
      listSubsystems: never,
      getLiveness: never,
      getReadiness: never,
      async *watchHealth(_, { signal }) {
        yield {};
        setMaxListeners(0, signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    }),
  ];
  const onInternalError = (error: unknown): void => void errors.push(error);
  const { port, server } = await startServices(t, services, edge, { onInternalError }, first);
  t.teardown(release);
  return {
    ...{ port, edge },
    /** Lines of the access log, the outcomes of all requests, and errors that are not in the error catalog. */
    ...{ access, outcomes, errors },
    /** Responds to all waiting and later requests. */
    release,
    /** Stops listening. Resolves once all requests have responses. */
    drain: (graceMs: number) => server.drain(graceMs),
  };
}

/** Starts a server of these services. Its gate stops with it. */
export async function startServices(
  t: Teardown,
  services: readonly ServedService[],
  gate: Edge,
  more: Partial<RpcServerDeps> = {},
  edge: "compiled" | "express" = "compiled",
) {
  const server = createRpcServer(
    {
      ...{ services, gate, info: { title: "test", version: "0" } },
      nodeCall: () => Promise.resolve("null"),
      onInternalError: () => undefined,
      ...more,
    },
    { edge, buildApplication: (parts) => Promise.resolve(buildApplication(parts)) },
  );
  const port = await server.listen({ host: "127.0.0.1", port: 0 });
  t.teardown(async () => {
    await server.drain(100);
    gate.stop();
  });
  return { port, server };
}

/** Creates text that compresses badly. */
function randomText(bytes: number): string {
  return randomBytes(Math.ceil((bytes * 3) / 4)).toString("base64");
}

/** The hash that is a number: 0x and 64 hex digits, which `Number` reads back. */
export function numberedHash(number: number): string {
  return `0x${number.toString(16).padStart(64, "0")}`;
}
