/** A worker process that prints a text and then dies, or never starts to listen. */
import { appendFileSync } from "node:fs";
import { openIpcChannel, type IpcHandlers } from "../../../src/workers/ipc.js";
import type { PoolHandlers, WorkerHandlers } from "../../../src/workers/pool.js";

/** The behavior of the worker, and the file that records its starts. */
export interface Fate {
  readonly file: string;
  readonly then: "die" | "hang" | "serve";
}

const side: WorkerHandlers<Fate, undefined> = {
  calls: {
    async start({ start: { file, then } }) {
      appendFileSync(file, `${then}\n`);
      if (then === "hang") {
        await new Promise(() => undefined);
      } else if (then === "die") {
        setTimeout(() => process.exit(3), 20);
      }
    },
    serve: () => Promise.resolve(),
    drain: () => process.exit(0),
  },
  streams: {},
  notifications: {},
};

const wire = openIpcChannel<IpcHandlers & PoolHandlers>(
  {
    send: (message) => process.connected && process.send!(message, undefined, undefined, () => undefined),
    onMessage: (listener) => void process.on("message", listener),
  },
  side,
  () => undefined,
);
wire.notify("up", undefined);
