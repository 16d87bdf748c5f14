/** What a campaign has opened, closed in the other order. */
import { errorMessage } from "../../src/base/errors/error-message.js";
import type { Teardown } from "../../test/helpers/nodes/teardown.js";

/** Takes what is to be closed, and closes it once. */
export function createClosing(): Teardown & { close(): Promise<void> } {
  const closers: (() => unknown)[] = [];
  return {
    teardown: (close) => void closers.push(close),
    async close() {
      for (const close of closers.splice(0).reverse()) {
        try {
          await close();
        } catch (error) {
          // The others are closed all the same: no node may go on by itself.
          process.stderr.write(`${errorMessage(error)}\n`);
        }
      }
    },
  };
}
