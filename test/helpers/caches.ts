/** Caches of this machine, in front of a node. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaults } from "./deployment.js";
import { freePort } from "./free-port.js";
import { ask } from "./plain-client.js";
import { run } from "./programs.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";

/** A cache that answers on this port. */
export interface Cache {
  readonly port: number;
  /** It lets callers wait for each other's answers, whoever they are. */
  readonly joinsCallers?: boolean;
  /** How often the node said that nothing has changed; undefined for a cache that does not count it. */
  readonly notModified?: () => Promise<number>;
}

/** Starts nginx, which keeps what it is told that it may, and asks anew with what it has. */
export async function startNginxCache(t: Teardown, nodePort: number): Promise<Cache> {
  const dir = await temporaryDirectory(t);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return await startProgram(t, "nginx", async (port) => {
    const text = [
      ...(process.getuid?.() === 0 ? ["user root;"] : []),
      "daemon off;",
      "worker_processes 1;",
      `pid ${dir}/nginx.pid;`,
      "events {}",
      "http {",
      "access_log off;",
      ...temporary.map((name) => `${name}_temp_path ${dir}/${name};`),
      `proxy_cache_path ${dir}/cache keys_zone=node:1m;`,
      "server {",
      `listen 127.0.0.1:${port};`,
      "location / {",
      `proxy_pass http://127.0.0.1:${nodePort};`,
      "proxy_http_version 1.1;",
      'proxy_set_header Connection "";',
      "proxy_cache node;",
      "proxy_cache_revalidate on;",
      "add_header X-Cache $upstream_cache_status always;",
      "}",
      "}",
      "}",
    ];
    await writeFile(join(dir, "nginx.conf"), text.join("\n"));
    return ["-p", dir, "-c", join(dir, "nginx.conf"), "-e", "stderr"];
  });
}

/** Starts Varnish with the node's own rules. */
export async function startVarnish(t: Teardown, nodePort: number): Promise<Cache> {
  return await startVarnishWith(t, nodePort, (rules) => rules);
}

/** The same for one that knows nothing of identities. */
export async function startPlainVarnish(t: Teardown, nodePort: number): Promise<Cache> {
  const condition = "req.http.identity || req.http.signature";
  const cache = await startVarnishWith(t, nodePort, (rules) => replaced(rules, condition, "false"));
  return { ...cache, joinsCallers: true };
}

async function startVarnishWith(t: Teardown, nodePort: number, adapt: (rules: string) => string): Promise<Cache> {
  const dir = await temporaryDirectory(t);
  const rules = adapt(await readFile("deploy/varnish/gatehouse.vcl", "utf8"));
  await writeFile(join(dir, "node.vcl"), replaced(rules, `"${defaults.rpcPort}"`, `"${nodePort}"`));
  const counters = join(dir, "varnish");
  const cache = await startProgram(t, "varnishd", (port) => {
    const place = ["-n", counters, "-a", `127.0.0.1:${port}`, "-f", join(dir, "node.vcl")];
    // Without rights of root there is no other user to become.
    return [...place, "-s", "malloc,32m", "-j", "none", "-F", "-p", "http_resp_hdr_len=16k"];
  });
  return {
    ...cache,
    async notModified() {
      const { stdout } = await run("varnishstat", ["-n", counters, "-1", "-f", "MAIN.fetch_304"]);
      return Number(/fetch_304\s+(\d+)/.exec(stdout)![1]);
    },
  };
}

function replaced(rules: string, from: string, to: string): string {
  if (!rules.includes(from)) {
    throw new Error(`The rules of Varnish have no ${from}.`);
  }
  return rules.replace(from, to);
}

/** Starts it on a free port; somebody else may take that before. */
async function startProgram(
  t: Teardown,
  program: string,
  prepare: (port: number) => string[] | Promise<string[]>,
): Promise<Cache> {
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
      if (
        await ask(port, "/version").then(
          ({ status }) => status === 200,
          () => false,
        )
      ) {
        return { port };
      }
      await sleep(50);
    }
    if (attempt === 3) {
      throw new Error(`${program} ended: ${errors}`);
    }
  }
}
