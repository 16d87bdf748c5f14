/** Node of a campaign: a process that can be killed, stopped, paused, and restarted with its data. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type RunningCli, startCli } from "../../../test/helpers/nodes/run-cli.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";

/** Parameters of a node. */
export interface NodePlan {
  readonly index: number;
  readonly name: string;
  readonly home: string;
  /** Public port. */
  readonly port: number;
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Called if the process exits by itself, with its exit code or signal and the end of its stderr. */
  readonly onEnd: (node: CampaignNode, reason: number | NodeJS.Signals | null, stderrTail: string) => void;
}

export interface CampaignNode {
  readonly index: number;
  readonly name: string;
  readonly home: string;
  readonly port: number;
  readonly isRunning: boolean;
  /** True if the process may exit by itself, because a fault has corrupted its data. */
  mayEnd: boolean;
  /** Starts the node. Resolves when it listens; rejects if it exits first, or does not listen within a minute. */
  start(): Promise<void>;
  /** Sends a signal, and waits for the exit. Returns the exit code; null after SIGKILL. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null>;
  pause(): void;
  resume(): void;
  /** Sets the offset of the node's clock from the clock of the machine. */
  shiftClock(ms: number): Promise<void>;
}

const startMs = 60_000;
const stopMs = 30_000;
const stderrTailLength = 2_000;

/** Creates a node without starting it. */
export function createNode(t: Teardown, plan: NodePlan): CampaignNode {
  const clockFile = join(plan.home, "clock");
  let running: RunningCli | undefined;
  let isEnding = false;

  const monitor = (started: RunningCli): void => {
    running = started;
    isEnding = false;
    void started.ended.then((code) => {
      if (running === started) {
        running = undefined;
        if (!isEnding) {
          plan.onEnd(node, code ?? started.child.signalCode, started.stderr().slice(-stderrTailLength));
        }
      }
    });
  };

  const node: CampaignNode = {
    ...{ index: plan.index, name: plan.name, home: plan.home, port: plan.port, mayEnd: false },
    get isRunning() {
      return running !== undefined;
    },
    async start() {
      const preload = new URL("inside.js", import.meta.url).href;
      const env = { ...plan.env, CAMPAIGN_CLOCK: clockFile, NODE_OPTIONS: `--import ${preload}` };
      let forceEnd: (() => unknown) | undefined;
      const close: Teardown = {
        teardown(end) {
          forceEnd = end;
          t.teardown(end);
        },
      };
      const timer = setTimeout(() => forceEnd?.(), startMs);
      try {
        monitor(await startCli(close, ["start", ...plan.flags], env));
      } finally {
        clearTimeout(timer);
      }
    },
    async end(signal) {
      if (running === undefined) {
        return null;
      }
      isEnding = true;
      const { child, ended } = running;
      child.kill(signal);
      // A paused process receives SIGTERM only after SIGCONT.
      child.kill("SIGCONT");
      const forceEnd = setTimeout(() => child.kill("SIGKILL"), stopMs);
      const code = await ended;
      clearTimeout(forceEnd);
      return code;
    },
    pause: () => void running?.child.kill("SIGSTOP"),
    resume: () => void running?.child.kill("SIGCONT"),
    shiftClock: (ms) => writeFile(clockFile, String(ms)),
  };
  return node;
}
