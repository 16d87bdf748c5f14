/** Control service: reports from other processes of the node, and commands of its operator. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BookEntrySchema, ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createListCutter } from "../base/limits/response-limits.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";

export interface Report {
  readonly status: SubsystemStatus;
  readonly port: number | undefined;
  readonly requestedPort: number | undefined;
  readonly error: string | undefined;
}

export type ShownEntry = MessageInitShape<typeof BookEntrySchema>;

export interface ControlDeps<Name extends string> {
  readonly nowMs: () => number;
  /** Subsystems that other processes may report. */
  readonly reportableNames: readonly Name[];
  /** Called with each report, and with a FAILED report when a report expires. */
  readonly onReport: (name: Name, report: Report) => void;
  /** Adds a peer after querying it. Throws RpcError if the endpoint is not a usable peer. */
  readonly addPeer: (endpoint: string, identity: string | undefined) => Promise<ShownEntry>;
  /** Removes a peer from the address book. Returns false if the peer is unknown. */
  readonly removePeer: (endpoint: string) => Promise<boolean>;
  readonly listBook: () => ShownEntry[];
}

const reportedStatuses = [SubsystemStatus.RUNNING, SubsystemStatus.READY, SubsystemStatus.FAILED];
const maxErrorLength = 500;

/** Creates the control service. `stop` clears the timers of its reports. */
export function createControl<Name extends string>(deps: ControlDeps<Name>) {
  const { nowMs, reportableNames, onReport, addPeer, removePeer, listBook } = deps;
  const pageOfBook = createListCutter<ShownEntry>();
  /** Expiry timers of the reports: a subsystem fails if its process does not report again in time. */
  const timers = new Map<string, NodeJS.Timeout>();

  /** Starts the time to live of a report, in place of that of the previous one. Returns the time of its expiry. */
  function renew(name: Name, seconds: number): number {
    clearTimeout(timers.get(name));
    const expire = (): void =>
      onReport(name, {
        ...{ status: SubsystemStatus.FAILED, port: undefined, requestedPort: undefined },
        error: `Its report expired: the process that runs it has not reported for ${seconds} s.`,
      });
    timers.set(name, setTimeout(expire, seconds * 1000));
    return nowMs() + seconds * 1000;
  }

  const service: Implementation<typeof ControlService> = {
    reportSubsystem({ name, status, port, requestedPort, error, leaseS }) {
      const subsystem = reportableNames.find((reportable) => reportable === name);
      if (subsystem === undefined) {
        const names = reportableNames.join(", ");
        throw new RpcError("INVALID_REQUEST", `Other processes can report only ${names}.`);
      }
      if (!reportedStatuses.includes(status)) {
        throw new RpcError("INVALID_REQUEST", "The status must be running, ready or failed.");
      }
      if (status === SubsystemStatus.FAILED && (error === undefined || error === "")) {
        throw new RpcError("INVALID_REQUEST", "A report of the status failed requires an error message.");
      }
      onReport(subsystem, { status, port, requestedPort, error: error?.slice(0, maxErrorLength) });
      return { leaseUntilMs: BigInt(renew(subsystem, leaseS)) };
    },
    async addPeer({ endpoint, identity }) {
      return { entry: await addPeer(endpoint, identity) };
    },
    async removePeer({ endpoint }) {
      if (!(await removePeer(endpoint))) {
        throw new RpcError("NOT_FOUND", "The node does not know this peer.");
      }
      return {};
    },
    listBook({ offset }) {
      const { items, nextOffset } = pageOfBook(listBook(), offset);
      return { entries: items, nextOffset };
    },
  };
  return { service, stop: () => timers.forEach((timer) => clearTimeout(timer)) };
}
