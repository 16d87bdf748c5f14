/** Starts real nodes for tests: port 0, a directory of their own, a database file. */
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import { loadConfig } from "../../../src/config/config.js";
import { defaultOverload } from "../../../src/edge/overload.js";
import { createProcessErrors, type ProcessErrors } from "../../../src/health/process-errors.js";
import { type RunningNode, startNode, type StartOptions } from "../../../src/node/node.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "./teardown.js";

/** The sample genesis. */
export const sampleGenesis = resolve("examples/genesis.json");

/** A peer that never answers: port 9 is nobody's. */
export const silentPeer = "https://127.0.0.1:9";

/** A running node. */
export interface TestNode extends RunningNode {
  readonly dir: string;
  readonly port: number;
  readonly databaseFile: string;
  readonly processErrors: ProcessErrors;
  /** Of its control service. */
  readonly control: Transport;
}

/** Starts a node before the tests of a file, for all of them. */
export function sharedTestNode(flags: Readonly<Record<string, string | boolean>>): Pick<TestNode, "port"> {
  let node: TestNode | undefined;
  const t = fileTeardown();
  test.before(async () => {
    node = await startTestNode(t, flags);
  });
  return {
    get port() {
      return node!.port;
    },
  };
}

/** A machine that has much else to do is late for everything: for a node of a test that is no reason to refuse work. */
const patient = { ...defaultOverload, maxLagMs: Infinity };

/**
 * Starts a node with these flags on top of port 0 on 127.0.0.1; it is stopped after the test. It has its operator's word
 * that its database holds all blocks there are.
 */
export async function startTestNode(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean | undefined>> = {},
  dir?: string,
  options: Partial<StartOptions> = {},
): Promise<TestNode> {
  const home = dir ?? (await temporaryDirectory(t));
  const processErrors = createProcessErrors();
  const config = loadConfig({
    flags: {
      "data-dir": home,
      host: "127.0.0.1",
      "rpc-port": "0",
      "omni-port": "0",
      "log-level": "silent",
      recover: true,
      ...flags,
    },
    env: {},
    cwd: home,
  });
  const node = await startNode(config, { processErrors, overload: patient, ...options });
  t.teardown(() => node.stop());
  return {
    ...node,
    dir: home,
    port: node.ports.rpc!,
    databaseFile: config.databaseUrl.replace(/^sqlite:/, ""),
    processErrors,
    control: controlTransport(join(home, "control.sock")),
  };
}

/** A control service's socket for clients of Connect. */
export function controlTransport(path: string): Transport {
  return createGrpcTransport({
    baseUrl: "http://localhost",
    nodeOptions: { createConnection: () => connect(path) },
  });
}
