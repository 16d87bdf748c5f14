/** Local proxies and caches, each on a free port in front of a node. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaults } from "./deployment.js";
import { ask } from "../wire/plain-client.js";
import { run } from "./programs.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../nodes/free-port.js";

/** A running cache. */
export interface Cache {
  readonly port: number;
  /** True if it merges concurrent requests of different callers. */
  readonly mergesCallers?: boolean;
  /** Returns the number of 304 responses of the node; undefined if the cache does not count them. */
  readonly notModified?: () => Promise<number>;
}

/** Starts nginx, which caches as the headers allow, and revalidates. */
export async function startNginxCache(t: Teardown, nodePort: number): Promise<Cache> {
  const dir = await temporaryDirectory(t);
  const port = await startProxy(t, {
    program: "nginx",
    prepare: (port) =>
      writeNginxConfiguration(dir, [
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
      ]),
    answers,
  });
  return { port };
}

/** Starts Varnish with the rules of deploy/varnish. */
export async function startVarnish(t: Teardown, nodePort: number): Promise<Cache> {
  return await startVarnishWith(t, nodePort, (rules) => rules);
}

/** Starts Varnish without the rule for signed requests. */
export async function startPlainVarnish(t: Teardown, nodePort: number): Promise<Cache> {
  const condition = "req.http.identity || req.http.signature";
  const cache = await startVarnishWith(t, nodePort, (rules) => replaced(rules, condition, "false"));
  return { ...cache, mergesCallers: true };
}

async function startVarnishWith(t: Teardown, nodePort: number, adapt: (rules: string) => string): Promise<Cache> {
  const dir = await temporaryDirectory(t);
  const rules = adapt(await readFile("deploy/varnish/gatehouse.vcl", "utf8"));
  await writeFile(join(dir, "node.vcl"), replaced(rules, `"${defaults.rpcPort}"`, `"${nodePort}"`));
  const counters = join(dir, "varnish");
  const port = await startProxy(t, {
    program: "varnishd",
    prepare: (port) => {
      const args = ["-n", counters, "-a", `127.0.0.1:${port}`, "-f", join(dir, "node.vcl")];
      // Without root, Varnish cannot change its user.
      return Promise.resolve([...args, "-s", "malloc,32m", "-j", "none", "-F", "-p", "http_resp_hdr_len=16k"]);
    },
    answers,
  });
  return {
    port,
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

async function answers(port: number): Promise<boolean> {
  return (await ask(port, "/version")).status === 200;
}

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
