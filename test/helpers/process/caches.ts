/** Local caches in front of a node. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaults } from "./deployment.js";
import { ask } from "../wire/plain-client.js";
import { run } from "../chain/programs.js";
import { startProxy, writeNginxConfiguration } from "./proxy-server.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";

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
