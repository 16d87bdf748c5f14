/** `gatehouse report`: tells a node how a subsystem is that another process runs. */
import { createClient } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { reportableNames } from "../health/subsystems.js";
import { addControlFlags, type ControlFlags, withControl } from "./control.js";
import { print } from "./output.js";

interface Flags extends ControlFlags {
  readonly lease: number;
  readonly port?: number;
  readonly requestedPort?: number;
  readonly error?: string;
  readonly json?: boolean;
}

const statuses = {
  running: SubsystemStatus.RUNNING,
  ready: SubsystemStatus.READY,
  failed: SubsystemStatus.FAILED,
} as const;

/** Adds the command. */
export function addReport(program: Command): void {
  addControlFlags(program.command("report <NAME> <STATUS>"))
    .description("Tell a node how a subsystem is that another process runs.")
    .option("--lease <SECONDS>", "How long the report holds; afterwards the subsystem has failed.", wholeNumber, 60)
    .option("--port <PORT>", "Port that the subsystem has bound.", wholeNumber)
    .option("--requested-port <PORT>", "Port that it wanted, if that is another one.", wholeNumber)
    .option("--error <TEXT>", "What went wrong; needed with failed.")
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
    .action(async (name: string, word: string, flags: Flags) => {
      const { leaseUntilMs } = await withControl(flags, (transport) =>
        createClient(ControlService, transport).reportSubsystem({
          name,
          status: readStatus(word),
          leaseS: flags.lease,
          port: flags.port,
          requestedPort: flags.requestedPort,
          error: flags.error,
        }),
      );
      const until = new Date(Number(leaseUntilMs)).toISOString();
      print(
        flags.json === true
          ? JSON.stringify({ leaseUntil: Number(leaseUntilMs) })
          : `${name} is ${word} until ${until}.`,
      );
    });
}

/** Anything else is for the node to refuse, in its own words. */
function readStatus(word: string): SubsystemStatus {
  return word in statuses ? statuses[word as keyof typeof statuses] : SubsystemStatus.UNSPECIFIED;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) {
    throw new InvalidArgumentError("It must be a whole number.");
  }
  return Number(text);
}
