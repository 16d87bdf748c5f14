/** Implementation of `gatehouse report`. */
import { createClient } from "@connectrpc/connect";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { withControl } from "./calls/control.js";
import type { ControlFlags } from "./usage/flags.js";
import { print } from "./terminal/output.js";

/** Content of the report. */
export interface ReportFlags extends ControlFlags {
  readonly lease: number;
  readonly port?: number;
  readonly requestedPort?: number;
  readonly error?: string;
}

const statuses = {
  running: SubsystemStatus.RUNNING,
  ready: SubsystemStatus.READY,
  failed: SubsystemStatus.FAILED,
} as const;

/** Sends the report, and prints the time of its expiry. */
export async function sendReport(name: string, status: string, flags: ReportFlags): Promise<void> {
  const { leaseUntilMs } = await withControl(flags, (transport) =>
    createClient(ControlService, transport).reportSubsystem({
      name,
      status: readStatus(status),
      leaseS: flags.lease,
      port: flags.port,
      requestedPort: flags.requestedPort,
      error: flags.error,
    }),
  );
  const until = new Date(Number(leaseUntilMs)).toISOString();
  print(
    flags.json === true ? JSON.stringify({ leaseUntil: Number(leaseUntilMs) }) : `${name} is ${status} until ${until}.`,
  );
}

/** Converts a status. The node rejects an unknown one with its own message. */
function readStatus(status: string): SubsystemStatus {
  return Object.hasOwn(statuses, status) ? statuses[status as keyof typeof statuses] : SubsystemStatus.UNSPECIFIED;
}
