/** Local proxies, each on a free port in front of a node. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../nodes/free-port.js";
import type { Teardown } from "../nodes/teardown.js";

/** A command that starts a proxy. */
export interface ProxyCommand {
  readonly program: string;
  /** Writes the configuration for this port. Resolves to the arguments. */
  readonly prepare: (port: number) => Promise<readonly string[]>;
  /** Resolves to true if the proxy responds on this port. */
  readonly answers: (port: number) => Promise<boolean>;
}

/** Starts a proxy on a free port. Another process may take the port first, so it tries three times. */
export async function startProxy(t: Teardown, { program, prepare, answers }: ProxyCommand): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const child = spawn(program, await prepare(port), { stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (errors += chunk));
    const ended = once(child, "close");
    t.teardown(async () => {
      child.kill("SIGTERM");
      await ended;
    });
    while (child.exitCode === null) {
      if (await answers(port).catch(() => false)) {
        return port;
      }
      await sleep(50);
    }
    if (attempt === 3) {
      throw new Error(`${program} ended: ${errors}`);
    }
  }
}

/** Writes a configuration of nginx that needs no root and only this folder. Resolves to the arguments of nginx. */
export async function writeNginxConfiguration(dir: string, http: readonly string[]): Promise<readonly string[]> {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const text = [
    ...(process.getuid?.() === 0 ? ["user root;"] : []),
    "daemon off;",
    "worker_processes 1;",
    `pid ${dir}/nginx.pid;`,
    "events {}",
    "http {",
    "access_log off;",
    ...temporary.map((name) => `${name}_temp_path ${dir}/${name};`),
    ...http,
    "}",
  ];
  const file = join(dir, "nginx.conf");
  await writeFile(file, text.join("\n"));
  return ["-p", dir, "-c", file, "-e", "stderr"];
}
