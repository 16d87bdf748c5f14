/** Light nodes in the test's process. */
import { createLogging } from "../../../src/base/logging/log.js";
import { startLight } from "../../../src/light/light-node.js";
import { testNetwork } from "../chain/transactions.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";

/**
 * Starts a light node of these nodes, and collects its log messages.
 *
 * @param existingDir directory of an earlier light node; by default a new one.
 */
export async function startTestLight(t: Teardown, urls: readonly string[], existingDir?: string) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push((JSON.parse(line) as { msg: string }).msg) };
  const { log } = createLogging({ level: "info", json: true, destination });
  const dir = existingDir ?? (await temporaryDirectory(t));
  const light = await startLight({ urls, genesisHash: testNetwork, dir, port: 0, maxAgeS: 3_600, log });
  t.teardown(() => light.stop());
  return { light, dir, lines };
}
