/** `gatehouse report`: reports the status of a subsystem that another process runs. */
import type { Command } from "commander";
import { reportableNames } from "../health/subsystems.js";
import { addControlFlags, numberBetween } from "./usage/flags.js";
import type { ReportFlags } from "./send-report.js";

export function addReport(command: Command): void {
  addControlFlags(command.argument("<NAME>").argument("<STATUS>"))
    .option(
      "--lease <SECONDS>",
      "Time after which the subsystem fails unless it is reported again.",
      numberBetween(1, 3_600),
      60,
    )
    .option("--port <PORT>", "Port that the subsystem listens on.", numberBetween(1, 65_535))
    .option("--requested-port <PORT>", "Port that was requested, if it differs.", numberBetween(1, 65_535))
    .option("--error <TEXT>", "Error message; required with failed.")
    .option("--json", "Print JSON.")
    .addHelpText(
      "after",
      `
NAME is one of ${reportableNames.join(", ")} (chain: for an external consensus); STATUS is running, ready or failed.
A program reports with gatehouse.control.v1.ControlService/ReportSubsystem on the same socket.

Examples:
  gatehouse report signaling ready --port 3005 --lease 30
  gatehouse report chain failed --error 'no quorum'`,
    )
    .action(async (name: string, status: string, flags: ReportFlags) => {
      const { sendReport } = await import("./send-report.js");
      await sendReport(name, status, flags);
    });
}
