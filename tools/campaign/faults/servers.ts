/** Faults of the PostgreSQL servers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EndedServer } from "../../../test/helpers/databases/postgres-server.js";
import { type Fault, inSeconds } from "./fault.js";

/** Kills, aborts or restarts a server. */
export const server: Fault = {
  description: "kills, aborts or restarts the PostgreSQL server of a node",
  unavailableReason: ({ databases }) => (databases.engine === "postgresql" ? undefined : "it requires PostgreSQL"),
  plan(chance, target) {
    const method = chance.pick(["SIGKILL", "SIGQUIT", "restart"] as const);
    const downMs = chance.pick([0, chance.below(6_000)]);
    const verb = { SIGKILL: "killed", SIGQUIT: "aborted", restart: "restarted" }[method];
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
  description: "stops, aborts or kills the primary PostgreSQL server of the authority, and promotes its standby",
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
