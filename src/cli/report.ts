/** `gatehouse report`: reports the status of a subsystem that another process runs. */
import type { Command } from "commander";
import { reportableNames } from "../health/subsystems.js";
import { printResult } from "./terminal/output.js";
import { addControlFlags, type ControlFlags, numberBetween } from "./usage/flags.js";

interface ReportFlags extends ControlFlags {
  readonly lease: number;
  readonly port?: number;
  readonly requestedPort?: number;
  readonly error?: string;
}

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
      const [{ withControl }, { ControlService }, { SubsystemStatus }] = await Promise.all([
        import("./calls/control.js"),
        import("../../gen/gatehouse/control/v1/control_pb.js"),
        import("../../gen/gatehouse/health/v1/health_pb.js"),
      ]);
      const { lease: leaseS, port, requestedPort, error } = flags;
      // The node rejects an unknown status with its own message.
      const { RUNNING, READY, FAILED } = SubsystemStatus;
      const value = new Map(Object.entries({ running: RUNNING, ready: READY, failed: FAILED })).get(status);
      const { leaseUntilMs } = await withControl(flags, ControlService, (control) =>
        control.reportSubsystem({ name, status: value, leaseS, port, requestedPort, error }),
      );
      const leaseUntil = Number(leaseUntilMs);
      printResult(flags, { leaseUntil }, () => `${name} is ${status} until ${new Date(leaseUntil).toISOString()}.`);
    });
}
