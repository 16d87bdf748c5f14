/** Mounts for one process, which work on Linux without root if user namespaces are allowed. */
import { whyNot } from "../nodes/when.js";

const inNamespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"] as const;

/** Returns the reason that a mounting shell command fails here; undefined if it works. */
export function whyNotMounted(command: string): string | undefined {
  const [program, ...args] = inNamespace;
  return whyNot(program, ...args, command);
}

/** Returns the arguments before a command that run this mounting shell command first. */
export function afterMounting(command: string): string[] {
  return [...inNamespace, `${command} && exec "$@"`, "sh"];
}
