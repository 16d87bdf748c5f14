/** Caches of this machine, in front of a node. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaults } from "./deployment.js";
import { ask } from "../wire/plain-client.js";
import { run } from "../chain/programs.js";
import { startProxy, writeNginxConfiguration } from "./proxy-server.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";

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
  const port = await startProxy(t, {
    program: "varnishd",
    prepare: (port) => {
      const place = ["-n", counters, "-a", `127.0.0.1:${port}`, "-f", join(dir, "node.vcl")];
      // Without rights of root there is no other user to become.
      return Promise.resolve([...place, "-s", "malloc,32m", "-j", "none", "-F", "-p", "http_resp_hdr_len=16k"]);
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
