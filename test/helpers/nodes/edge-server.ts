/** A server of all protocols behind a gate of its own, whose bounds a test sets and whose counts it reads. */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { HealthService } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import type { AccessLine } from "../../../src/edge/access-log.js";
import { createEdge, type Edge, type EdgeSettings } from "../../../src/edge/edge.js";
import { createRpcServer } from "../../../src/rpc/server/rpc-server.js";
import { serve } from "../../../src/rpc/service.js";
import type { Teardown } from "./teardown.js";
import { compiledFirst } from "./application.js";
import { numberedHash } from "../chain/numbered-hash.js";

/** What is under test. */
export interface EdgeServer {
  readonly port: number;
  readonly edge: Edge;
  /** Lines of the access log. */
  readonly access: readonly AccessLine[];
  /** How requests ended, all of them. */
  readonly outcomes: readonly string[];
  /** What was thrown that has no name in the catalog. */
  readonly errors: readonly unknown[];
  /** Answers all who wait, and who ask from now on. */
  release(): void;
  /** Stops listening, and resolves when all is answered. */
  drain(graceMs: number): Promise<void>;
}

/** Of an edge that counts nothing and believes nobody. */
export const openSettings: EdgeSettings = {
  trustedProxies: [],
  identityMode: "signed",
  identityForm: "any",
  network: undefined,
  rateLimitPerMinute: 0,
  rateLimitExempt: [],
  onAccess: () => undefined,
  onUntrustedForwarding: () => undefined,
};

/** Path of an answer of so many bytes and some more. */
export const largeAnswer = (bytes: number): string => `/zk/nullifier/${numberedHash(bytes)}`;
/** Path of an answer that waits until {@link EdgeServer.release}. */
export const waitingAnswer = "/zk/merkle-root";

/** Starts it; `first` is what answers HTTP/1.1 first. */
export async function startEdgeServer(
  t: Teardown,
  settings: Partial<EdgeSettings> = {},
  first: "compiled" | "express" = "compiled",
): Promise<EdgeServer> {
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
    overload: { maxInFlight: 2_000, maxInFlightPerAddress: 500, maxLagMs: Infinity },
    ...settings,
  });
  const never = (): never => {
    throw new Error("not called");
  };
  const server = createRpcServer(
    {
      services: [
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
      ],
      gate: edge,
      nodeCall: () => Promise.resolve("null"),
      info: { title: "test", version: "0" },
      onInternalError: (error) => errors.push(error),
    },
    { ...compiledFirst, edge: first },
  );
  const port = await server.listen({ host: "127.0.0.1", port: 0 });
  t.teardown(async () => {
    release();
    await server.drain(100);
    edge.stop();
  });
  return { port, edge, access, outcomes, errors, release, drain: (graceMs) => server.drain(graceMs) };
}

/** Text that hardly becomes shorter when a protocol compresses it. */
function randomText(bytes: number): string {
  return randomBytes(Math.ceil((bytes * 3) / 4)).toString("base64");
}
