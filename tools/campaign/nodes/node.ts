/** A node of the campaign: a process of its own that can be killed, stopped, paused, and started again where it was. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type RunningCli, startCli } from "../../../test/helpers/nodes/start-cli.js";
import type { Teardown } from "../../../test/helpers/nodes/teardown.js";

/** What it is started with. */
export interface NodePlan {
  readonly index: number;
  readonly name: string;
  readonly home: string;
  /** Of everybody. */
  readonly port: number;
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Hears of a process that ended by itself. */
  readonly onEnd: (node: CampaignNode, code: number | null, lastWords: string) => void;
}

/** A node. */
export interface CampaignNode {
  readonly index: number;
  readonly name: string;
  readonly home: string;
  readonly port: number;
  readonly isRunning: boolean;
  /** It may end by itself, since what it needs was destroyed. */
  mayEnd: boolean;
  /** Resolves when it listens. @throws Error when it ends before, or does not within a minute */
  start(): Promise<void>;
  /** Ends it by a signal; gives the exit code, null after SIGKILL. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null>;
  pause(): void;
  resume(): void;
  /** Shifts its clock against that of the machine. */
  shiftClock(ms: number): Promise<void>;
}

const startMs = 60_000;
const stopMs = 30_000;
const lastWordsLength = 2_000;

/** Prepares a node; it is not started yet. */
export function createNode(t: Teardown, plan: NodePlan): CampaignNode {
  const clockFile = join(plan.home, "clock");
  let running: RunningCli | undefined;
  let isAskedToEnd = false;

  const watch = (started: RunningCli): void => {
    running = started;
    isAskedToEnd = false;
    void started.ended.then((code) => {
      if (running === started) {
        running = undefined;
        if (!isAskedToEnd) {
          plan.onEnd(node, code, started.stderr().slice(-lastWordsLength));
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
      const inside = new URL("inside.js", import.meta.url).href;
      const env = { ...plan.env, CAMPAIGN_CLOCK: clockFile, NODE_OPTIONS: `--import ${inside}` };
      let force: (() => unknown) | undefined;
      const close: Teardown = {
        teardown(end) {
          force = end;
          t.teardown(end);
        },
      };
      const timer = setTimeout(() => force?.(), startMs);
      try {
        watch(await startCli(close, ["start", ...plan.flags], env));
      } finally {
        clearTimeout(timer);
      }
    },
    async end(signal) {
      if (running === undefined) {
        return null;
      }
      isAskedToEnd = true;
      const { child, ended } = running;
      child.kill(signal);
      // A process that is paused hears of SIGTERM only when it goes on.
      child.kill("SIGCONT");
      const force = setTimeout(() => child.kill("SIGKILL"), stopMs);
      const code = await ended;
      clearTimeout(force);
      return code;
    },
    pause: () => void running?.child.kill("SIGSTOP"),
    resume: () => void running?.child.kill("SIGCONT"),
    shiftClock: (ms) => writeFile(clockFile, String(ms)),
  };
  return node;
}
