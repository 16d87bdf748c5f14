/** All kinds of faults. */
import type { FaultKind } from "../settings.js";
import { corrupt, disk, power } from "./disks.js";
import type { Fault } from "./fault.js";
import { cut, loss } from "./links.js";
import { clock, join, kill, pause, stop } from "./processes.js";
import { server, switchover } from "./servers.js";

/** Faults by kind. */
export const faults: Readonly<Record<FaultKind, Fault>> = {
  ...{ kill, stop, pause, join },
  ...{ cut, loss, clock },
  ...{ disk, corrupt, power },
  ...{ server, switchover },
};
