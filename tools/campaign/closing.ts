/** Closes the resources of a campaign in reverse order. */
import { errorMessage } from "../../src/base/errors/error-message.js";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";

/** Creates a teardown that collects functions and runs each once, the last one first. */
export function createTeardownStack(): Teardown & { close(): Promise<void> } {
  const closers: (() => unknown)[] = [];
  return {
    teardown: (close) => void closers.push(close),
    async close() {
      for (const close of closers.splice(0).reverse()) {
        try {
          await close();
        } catch (error) {
          // Continue: no node process may be left running.
          process.stderr.write(`${errorMessage(error)}\n`);
        }
      }
    },
  };
}
