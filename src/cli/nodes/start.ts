/** `gatehouse start`: runs a node until it is stopped. */
import type { Command } from "commander";
import type { Config } from "../../config/config.js";
import type { RunningNode, RunOptions } from "../../node/node.js";
import { type PeriodicTask, startPeriodicTask } from "../../base/async/periodic-task.js";
import { addNodeOptions, loadNodeConfig } from "../usage/node-options.js";
import { describeWarnings, paint, printResult } from "../terminal/output.js";
import { type Progress, startProgress } from "../terminal/progress.js";
import { widthOf } from "../terminal/wrap.js";
import { runUntilSignal, type Service } from "./signals.js";

const drawEveryMs = 500;

export function addStart(command: Command): void {
  command
    .addHelpText(
      "after",
      `
Every option is also an environment variable (shown above) and a key of the --config file.
A flag wins over the environment, the environment over the file, the file over the default.

Examples:
  gatehouse start --genesis genesis.json --peers peers.json
  gatehouse start --config examples/config.yaml --log-level debug
  GATEHOUSE_RPC_PORT=8080 gatehouse start --genesis genesis.json --json`,
    )
    .action(async () => {
      const { config } = await loadNodeConfig(command);
      // Until the node registers its handler, it has read no files, so a reload does nothing.
      let reload = (): void => undefined;
      await runUntilSignal(
        (signal, onRoleChangeFailed) =>
          start(config, { signal, onRoleChangeFailed, onReload: (handler) => (reload = handler) }),
        () => reload(),
      );
    });
  addNodeOptions(command);
}

async function start(
  config: Config,
  { onRoleChangeFailed, ...options }: Omit<RunOptions, "processErrors" | "onReady">,
): Promise<Service> {
  const [{ runNode }, { ProcessErrors, watchProcess }] = await Promise.all([
    import("../../node/node.js"),
    import("../../health/process-errors.js"),
  ]);
  const processErrors = new ProcessErrors();
  let isFirst = true;
  let drawing: PeriodicTask | undefined;
  const running = await runNode(config, {
    ...options,
    processErrors,
    onReady(node) {
      if (isFirst) {
        watchProcess(processErrors, node.log);
      }
      isFirst = false;
      void drawing?.stop();
      const event = { event: "ready", role: node.role, rpc: node.rpcUrl, ports: node.ports };
      printResult(config, event, () => panel(node));
      drawing = config.json ? undefined : showCatchingUp(node);
    },
    onRoleChangeFailed(error) {
      void drawing?.stop();
      onRoleChangeFailed(error);
    },
  });
  return {
    announceStop: running.announceStop,
    async stop() {
      void drawing?.stop();
      await running.stop();
    },
  };
}

/** Shows a progress bar while the node catches up with its peers, if stderr is a terminal. The log shows it always. */
function showCatchingUp(node: RunningNode): PeriodicTask {
  let bar: Progress | undefined;
  const updateBar = (): Promise<void> => {
    const state = process.stderr.isTTY ? node.syncProgress() : undefined;
    if (state === undefined || state.targetBlock - state.block < 1n) {
      bar?.end();
      bar = undefined;
    } else {
      bar ??= startProgress("blocks", Number(state.targetBlock), Number(state.block));
      bar.update(Number(state.block), Number(state.targetBlock));
    }
    return Promise.resolve();
  };
  return startPeriodicTask(updateBar, drawEveryMs, () => undefined);
}

function panel(node: RunningNode): string[] {
  const dormancy = node.dormant ? "  dormant: no peers" : "";
  const state = node.role === "writer" ? dormancy : `  ${node.role}`;
  return [
    "",
    `  ${paint("bold", `Gatehouse ${node.version}`)} "${node.versionName}"${paint("yellow", state)}`,
    `  ${node.rpcUrl}   HTTP and gRPC${node.workers === 0 ? "" : `, by ${node.workers} workers`}`,
    `  ${node.publicKey}`,
    ...describeWarnings(node.warnings, widthOf(process.stdout) - 2).map((line) => `  ${line}`),
    "",
    `  ${node.rpcUrl}/status   status page`,
    "",
    "  Try:",
    `    curl ${node.rpcUrl}/health`,
    `    curl ${node.rpcUrl}/info`,
    `    curl '${node.rpcUrl}/readyz?verbose'`,
    "",
    `  ${paint("dim", "Ctrl-C stops it.")}`,
    "",
  ];
}
