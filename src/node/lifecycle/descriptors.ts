/**
 * File descriptors of this process. Connections of clients get what the database, threads, files and probes leave, so
 * that no number of clients makes the node fail to open its own files.
 */
import { readFileSync } from "node:fs";
import { StartError } from "../../base/errors/start-error.js";

/**
 * Descriptors that are not for connections of clients. A booted node uses 40 to 70, and the start opens up to 60 files
 * of the program at once.
 */
const reservedDescriptors = 144;
/** Fewest connections with which a node is useful: those of probes, of other nodes, and of some clients. */
const minConnections = 48;

/** Describes how an operator raises the limit. */
export const howToRaise = "`ulimit -n 65536` in the shell, or LimitNOFILE=65536 in the systemd unit";

/** Highest numbers of connections: of the public port with the MCP port, of the internal port, and of small ports. */
export interface PortConnections {
  readonly public: number;
  readonly internal: number;
  readonly small: number;
}

/** Divides the descriptors of this process among its ports. Numbers are infinite if the process has no limit. */
export function divideDescriptors(limit = findDescriptorLimit()): PortConnections {
  const available = limit - reservedDescriptors;
  return {
    public: Math.floor((available * 5) / 8),
    internal: Math.floor(available / 4),
    small: Math.floor(available / 16),
  };
}

/** Returns the descriptors that a process needs for ports with this many connections. */
export function neededDescriptors(publicConnections: number): number {
  return reservedDescriptors + Math.ceil((publicConnections * 8) / 5);
}

/** @throws StartError if this process may have too few descriptors for a node. */
export function checkDescriptors(limit = findDescriptorLimit()): void {
  const needed = reservedDescriptors + minConnections;
  if (limit < needed) {
    throw new StartError(
      `This process may have ${limit} open files, and a node needs at least ${needed}; raise the limit: ${howToRaise}.`,
    );
  }
}

/**
 * Returns the limit on the open files of this process: on Linux from /proc, elsewhere from the diagnostic report of
 * Node.js. Returns Infinity if there is no limit, or none is known, as on Windows. Node.js raises the soft limit to the
 * hard one when it starts.
 */
function findDescriptorLimit(): number {
  if (process.platform !== "linux") {
    const { userLimits } = process.report.getReport() as {
      readonly userLimits?: Readonly<Record<string, { readonly soft: unknown }>>;
    };
    return toLimit(userLimits?.["open_files"]?.soft);
  }
  try {
    return toLimit(/^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
  } catch {
    return Infinity;
  }
}

/** Converts a limit to a number. Any text such as "unlimited" means no limit. */
function toLimit(value: unknown): number {
  return Number(value) || Infinity;
}
