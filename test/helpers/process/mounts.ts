/** File systems mounted for one process alone, which Linux lets anybody do where user namespaces are allowed. */
import { whyNot } from "../nodes/when.js";

const inNamespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"] as const;

/** Why a shell command that mounts something cannot be run here; undefined where it can. */
export function whyNotMounted(command: string): string | undefined {
  const [program, ...args] = inNamespace;
  return whyNot(program, ...args, command);
}

/** What stands before a command, so that this shell command has mounted something for it. */
export function afterMounting(command: string): string[] {
  return [...inNamespace, `${command} && exec "$@"`, "sh"];
}
