/** The control service: what the other processes of the node, and its operator, may say. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BookEntrySchema, ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createListCutter } from "../base/limits/response-limits.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { createReportTtl } from "./report-ttl.js";

/** What a process reports. */
export interface Report {
  readonly status: SubsystemStatus;
  readonly port: number | undefined;
  readonly requestedPort: number | undefined;
  readonly error: string | undefined;
}

/** An entry of the address book, as it is shown. */
export type ShownEntry = MessageInitShape<typeof BookEntrySchema>;

export interface ControlDeps<Name extends string> {
  readonly nowMs: () => number;
  /** The subsystems that other processes may report. */
  readonly reportableNames: readonly Name[];
  /** Takes a report; one of a lease that ran out is a failure. */
  readonly onReport: (name: Name, report: Report) => void;
  /** Adds a peer and asks it. Throws a Failure when it is none. */
  readonly addPeer: (endpoint: string, identity: string | undefined) => Promise<ShownEntry>;
  /** Forgets a peer; false when it is unknown. */
  readonly removePeer: (endpoint: string) => Promise<boolean>;
  readonly listBook: () => ShownEntry[];
}

export interface Control {
  readonly service: Implementation<typeof ControlService>;
  stop(): void;
}

const reportedStatuses = [SubsystemStatus.RUNNING, SubsystemStatus.READY, SubsystemStatus.FAILED];
const maxErrorLength = 500;

export function createControl<Name extends string>(deps: ControlDeps<Name>): Control {
  const { nowMs, reportableNames, onReport, addPeer, removePeer, listBook } = deps;
  const cutBook = createListCutter<ShownEntry>();
  const leases = createReportTtl(nowMs, (name, seconds) =>
    onReport(name as Name, {
      status: SubsystemStatus.FAILED,
      port: undefined,
      requestedPort: undefined,
      error: `Its lease ran out: the process that runs it has not reported for ${seconds} s.`,
    }),
  );

  return {
    service: {
      reportSubsystem({ name, status, port, requestedPort, error, leaseS }) {
        const reported = reportableNames.find((each) => each === name);
        if (reported === undefined) {
          const names = reportableNames.join(", ");
          throw new RpcError("INVALID_REQUEST", `Other processes report ${names}, and nothing else.`);
        }
        if (!reportedStatuses.includes(status)) {
          throw new RpcError("INVALID_REQUEST", "The status must be running, ready or failed.");
        }
        if (status === SubsystemStatus.FAILED && (error === undefined || error === "")) {
          throw new RpcError("INVALID_REQUEST", "A failure must say what went wrong.");
        }
        onReport(reported, { status, port, requestedPort, error: error?.slice(0, maxErrorLength) });
        return { leaseUntilMs: BigInt(leases.renew(name, leaseS)) };
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
        const { items, nextOffset } = cutBook(listBook(), offset);
        return { entries: items, nextOffset };
      },
    },
    stop: () => leases.stop(),
  };
}
