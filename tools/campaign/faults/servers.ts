/** Faults of PostgreSQL's servers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EndedServer } from "../../../test/helpers/databases/postgres-server.js";
import { type Fault, inSeconds } from "./fault.js";

/** A server that is killed, or stopped at once, or restarted. */
export const server: Fault = {
  kind: "server",
  does: "kills the PostgreSQL server of the authority or of the followers, stops it at once, or restarts it",
  whyNot: ({ databases }) => (databases.engine === "postgresql" ? undefined : "it is for servers of PostgreSQL"),
  plan(chance, target) {
    const how = chance.pick(["SIGKILL", "SIGQUIT", "restart"] as const);
    const downMs = chance.pick([0, chance.below(6_000)]);
    const what = { SIGKILL: "killed", SIGQUIT: "stopped at once", restart: "restarted" }[how];
    return {
      ...{ kind: "server", target, title: `server ${what}, back after ${inSeconds(downMs)}` },
      async run({ network: { databases } }) {
        const one = databases.servers[Math.min(target, 1)]!;
        await (how === "restart" ? one.stop() : one.crash(how));
        await sleep(downMs);
        await startAgain(one);
      },
    };
  },
};

/** What a killed server has left behind keeps the next one from starting, for a moment. */
async function startAgain(one: EndedServer): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await one.start();
      return;
    } catch (error) {
      if (attempt === 40) {
        throw new Error("The PostgreSQL server does not start again.", { cause: error });
      }
      await sleep(250);
    }
  }
}

/** A standby that takes over. */
export const switchover: Fault = {
  kind: "switchover",
  does: "ends the authority's PostgreSQL server in one of three ways, and has its standby take its place",
  targets: [0],
  whyNot: ({ databases }) => (databases.pair === undefined ? "the authority's database has no standby" : undefined),
  plan(chance, target) {
    const end = chance.pick(["stopped", "aborted", "killed"] as const);
    return {
      ...{ kind: "switchover", target, title: `switchover, the primary is ${end}` },
      run: async ({ network: { databases } }) => await databases.pair!.changePlaces(end),
    };
  },
};
