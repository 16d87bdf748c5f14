/** Faults of the PostgreSQL servers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EndedServer } from "../../../test/helpers/databases/postgres-server.js";
import { type Fault, inSeconds } from "./fault.js";

/** Kills, aborts or restarts a server. */
export const server: Fault = {
  description: "kills the PostgreSQL server of a node, stops it at once, or restarts it",
  unavailableReason: ({ databases }) =>
    databases.engine === "postgresql" ? undefined : "it is for servers of PostgreSQL",
  plan(chance, target) {
    const method = chance.pick(["SIGKILL", "SIGQUIT", "restart"] as const);
    const downMs = chance.pick([0, chance.below(6_000)]);
    const verb = { SIGKILL: "killed", SIGQUIT: "stopped at once", restart: "restarted" }[method];
    return {
      title: `server ${verb}, back after ${inSeconds(downMs)}`,
      async run({ network: { databases } }) {
        const postgres = databases.servers[target]!;
        await (method === "restart" ? postgres.stop() : postgres.crash(method));
        await sleep(downMs);
        await startAgain(postgres);
      },
    };
  },
};

/** Starts a server. Retries for 10 s, because files of a killed server delay the next start. */
async function startAgain(postgres: EndedServer): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await postgres.start();
      return;
    } catch (error) {
      if (attempt === 40) {
        throw new Error("The PostgreSQL server does not start again.", { cause: error });
      }
      await sleep(250);
    }
  }
}

/** Ends the primary, and promotes the standby. */
export const switchover: Fault = {
  description: "ends the authority's PostgreSQL server in one of three ways, and has its standby take its place",
  targets: [0],
  unavailableReason: ({ databases }) =>
    databases.pair === undefined ? "the authority's database has no standby" : undefined,
  plan(chance) {
    const end = chance.pick(["stopped", "aborted", "killed"] as const);
    return {
      title: `switchover, the primary is ${end}`,
      run: async ({ network: { databases } }) => await databases.pair!.changePlaces(end),
    };
  },
};
