/** `gatehouse doctor`: looks for problems of a node on this machine. */
import type { Command } from "commander";
import { paint, printResult } from "../terminal/output.js";
import { widthOf, wrap } from "../terminal/wrap.js";
import { ExitError } from "../usage/errors.js";
import { addTrustFlags } from "../usage/flags.js";
import { addNodeOptions, loadNodeConfig } from "../usage/node-options.js";
import type { DoctorCheck } from "./check.js";

export function addDoctor(command: Command): void {
  addTrustFlags(command)
    .option("--node <URL>", "Address of the node on this machine. Default: built from --host and --rpc-port.")
    .addHelpText(
      "after",
      `
Pass the options of the node: the same flags, environment and configuration file. The node may run or not; nothing is changed. Each line is ok, warn or FAIL with advice, or skip if a check is not possible.

Exit codes: 0 no check failed, 1 a check failed, 2 the configuration is wrong.

Examples:
  gatehouse doctor --data-dir /var/lib/gatehouse
  gatehouse doctor --config /etc/gatehouse.yaml --json`,
    );
  addNodeOptions(command);
  command.action(async (flags: { readonly node?: string; readonly json?: boolean }) => {
    const { config } = await loadNodeConfig(command);
    const [{ checkFiles }, { checkDatabase }, { checkPorts }, { checkNetwork, findNode }] = await Promise.all([
      import("./check-files.js"),
      import("./check-database.js"),
      import("./check-ports.js"),
      import("./check-network.js"),
    ]);
    // In the order in which a node depends on what is checked.
    const { key, checks: files } = await checkFiles(config);
    const { checks: database, genesis } = await checkDatabase(config, key);
    const node = await findNode(config, flags.node, key);
    const ports = await checkPorts(config, node);
    const network = await checkNetwork({ config, key, node, genesis });
    const checks = [...files, ...database, ...ports, ...network];
    const count = (counted: DoctorCheck["status"]) => checks.filter(({ status }) => status === counted).length;
    const summary = `${checks.length} checks: ${count("fail")} failed, ${count("warn")} with warnings.`;
    printResult(flags, { ok: count("fail") === 0, checks }, () => [...describe(checks), "", summary]);
    if (count("fail") > 0) {
      throw new ExitError("");
    }
  });
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
