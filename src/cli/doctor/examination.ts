/** Implementation of `gatehouse doctor`: all checks, in the order in which a node depends on their subjects. */
import type { Config } from "../../config/config.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import { paint, print } from "../terminal/output.js";
import { widthOf, wrap } from "../terminal/wrap.js";
import type { DoctorCheck } from "./check.js";
import { checkDatabase, type DatabaseFindings } from "./check-database.js";
import { checkFiles } from "./check-files.js";
import { checkNetwork } from "./check-network.js";
import { checkPorts } from "./check-ports.js";
import { findNode } from "./local-node.js";

/**
 * Checks a node and prints the results.
 *
 * @param url URL of the node. Default: derived from the configuration.
 * @throws ExitError with code 1 and an empty message if a check failed.
 */
export async function examine(config: Config, url: string | undefined): Promise<void> {
  const { key, checks: files } = await checkFiles(config);
  const database: DatabaseFindings = await checkDatabase(config, key);
  const node = await findNode(config, url, key);
  const ports = await checkPorts(config, node);
  const network = await checkNetwork({ config, key, node, genesis: database.genesis });
  const checks = [...files, ...database.checks, ...ports, ...network];
  const failed = checks.filter(({ status }) => status === "fail").length;
  if (config.json) {
    print(JSON.stringify({ ok: failed === 0, checks }));
  } else {
    const warned = checks.filter(({ status }) => status === "warn").length;
    print(...describe(checks), "", `${checks.length} checks: ${failed} failed, ${warned} with warnings.`);
  }
  if (failed > 0) {
    throw new ExitError("", exitCodes.failed);
  }
}

const colors = { ok: "green", warn: "yellow", fail: "red", skip: "dim" } as const;

function describe(checks: readonly DoctorCheck[]): string[] {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length));
  const start = nameWidth + "  FAIL  ".length;
  const width = Math.max(widthOf(process.stdout) - start, 20);
  return checks.flatMap(({ name, status, found, remedy }) => {
    const label = status === "fail" ? "FAIL" : status.padEnd(4);
    const lines = [...wrap(found, width), ...(remedy === undefined ? [] : wrap(`→ ${remedy}`, width))];
    return lines.map((line, i) =>
      i === 0 ? `${name.padEnd(nameWidth)}  ${paint(colors[status], label)}  ${line}` : `${" ".repeat(start)}${line}`,
    );
  });
}
