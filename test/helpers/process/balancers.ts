/** Real load balancers in front of two nodes, with the configurations of deploy/ and docs/probes.md. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCertificate } from "../nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";
import { requestThrough } from "../wire/tls-client.js";
import { startProxy, type ProxyCommand, writeNginxConfiguration } from "./caches.js";
import { adapt, defaults } from "./deployment.js";
import { whyNot } from "./programs.js";
import { savedBlock } from "./saved-blocks.js";

/** A running load balancer. */
export interface Balancer {
  readonly url: string;
  /** Its certificate; undefined without TLS. */
  readonly ca: Buffer | undefined;
}

/** A load balancer that can be started. */
export interface BalancerKind {
  readonly name: string;
  /** The reason that it cannot run here. */
  readonly missing: string | undefined;
  readonly forwardsGrpc: boolean;
  /** Starts it in front of the nodes at two ports. */
  start(t: Teardown, nodes: readonly [number, number]): Promise<Balancer>;
}

const files = {
  haproxy: "deploy/haproxy/haproxy.cfg",
  apache: "deploy/apache/gatehouse.conf",
  caddy: "deploy/caddy/Caddyfile",
  nginx: "deploy/nginx/gatehouse.conf",
};

const addressesOf = ([one, two]: readonly [number, number]) => ({
  [`10.0.0.1:${defaults.rpcPort}`]: `127.0.0.1:${one}`,
  [`10.0.0.2:${defaults.rpcPort}`]: `127.0.0.1:${two}`,
});

interface TlsFiles {
  readonly dir: string;
  readonly cert: string;
  readonly key: string;
}

/** Starts a program that ends TLS. `prepare` writes its configuration and resolves to its arguments. */
async function startTls(
  t: Teardown,
  program: string,
  prepare: (files: TlsFiles, port: number) => Promise<readonly string[]>,
): Promise<Balancer> {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await makeCertificate(dir);
  const ca = await readFile(cert);
  const urlOf = (port: number): string => `https://127.0.0.1:${port}`;
  const command: ProxyCommand = {
    program,
    prepare: (port) => prepare({ dir, cert, key }, port),
    answers: async (port) => (await requestThrough({ url: urlOf(port), ca }, "/version")).status === 200,
  };
  return { url: urlOf(await startProxy(t, command)), ca };
}

const startHaproxy =
  (changes: Readonly<Record<string, string>>): BalancerKind["start"] =>
  (t, nodes) =>
    startTls(t, "haproxy", async ({ dir, cert, key }, port) => {
      const file = join(dir, "haproxy.cfg");
      const pem = join(dir, "both.pem");
      await writeFile(pem, `${await readFile(cert, "utf8")}${await readFile(key, "utf8")}`);
      const text = adapt(await readFile(files.haproxy, "utf8"), {
        ...addressesOf(nodes),
        "bind :443": `bind 127.0.0.1:${port}`,
        "/etc/haproxy/tls/gatehouse.pem": pem,
        ...changes,
      });
      await writeFile(file, text);
      return ["-db", "-f", file];
    });

const haproxy: BalancerKind = {
  name: "HAProxy",
  missing: whyNot("haproxy", "-v"),
  forwardsGrpc: true,
  start: startHaproxy({}),
};

/** HAProxy that never repeats a request which a node refused. */
export const haproxyOnce: BalancerKind = {
  ...haproxy,
  start: startHaproxy({ "retries 3": "retries 0", "option redispatch 1": "no option redispatch" }),
};

const apacheModules = "/usr/lib/apache2/modules";
/** The modules that the file names, and those on which every configuration of Debian depends. */
const apacheNeeds = [
  ...["mpm_event", "authz_core", "socache_shmcb", "proxy", "ssl", "http2", "headers", "proxy_http"],
  ...["proxy_balancer", "lbmethod_byrequests", "slotmem_shm", "proxy_hcheck"],
];

/** Writes a configuration of Apache that needs only this folder. Returns the arguments. */
export async function writeApacheConfiguration(dir: string, port: number, text: string): Promise<readonly string[]> {
  const lines = [
    `ServerRoot ${dir}`,
    "ServerName localhost",
    `DefaultRuntimeDir ${dir}`,
    `PidFile ${dir}/pid`,
    `ErrorLog ${dir}/errors`,
    `Listen 127.0.0.1:${port}`,
    ...apacheNeeds.map((name) => `LoadModule ${name}_module ${apacheModules}/mod_${name}.so`),
    text,
  ];
  const file = join(dir, "apache.conf");
  await writeFile(file, lines.join("\n"));
  return ["-f", file, "-DFOREGROUND"];
}

const apache: BalancerKind = {
  name: "Apache",
  missing: whyNot("apache2", "-v") ?? (existsSync(apacheModules) ? undefined : "Apache has no modules"),
  forwardsGrpc: false,
  start: (t, nodes) =>
    startTls(t, "apache2", async ({ dir, cert, key }, port) => {
      const text = adapt(await readFile(files.apache, "utf8"), {
        ...addressesOf(nodes),
        "*:443": `127.0.0.1:${port}`,
        "/etc/apache2/tls/gatehouse.crt": cert,
        "/etc/apache2/tls/gatehouse.key": key,
      });
      return await writeApacheConfiguration(dir, port, text);
    }),
};

const caddy: BalancerKind = {
  name: "Caddy",
  missing: whyNot("caddy", "version"),
  forwardsGrpc: true,
  start: (t, nodes) =>
    startTls(t, "caddy", async ({ dir, cert, key }, port) => {
      const file = join(dir, "Caddyfile");
      const text = adapt(await readFile(files.caddy, "utf8"), {
        ...addressesOf(nodes),
        "node.example.org {": `https://127.0.0.1:${port} {\n\ttls ${cert} ${key}`,
      });
      // Without a limit, Caddy would wait for open connections at its end.
      const own = ["admin off", "auto_https off", `storage file_system ${dir}`, "grace_period 1s"];
      const globals = `{\n${own.join("\n")}\n}\n`;
      await writeFile(file, globals + text);
      return ["run", "--adapter", "caddyfile", "--config", file];
    }),
};

const varnish: BalancerKind = {
  name: "Varnish",
  missing: whyNot("varnishd", "-V"),
  forwardsGrpc: false,
  async start(t, [one, two]) {
    const dir = await temporaryDirectory(t);
    const text = adapt(await savedBlock("docs/probes.md", "data/balanced.vcl"), {
      [`"10.0.0.1"; .port = "${defaults.rpcPort}"`]: `"127.0.0.1"; .port = "${one}"`,
      [`"10.0.0.2"; .port = "${defaults.rpcPort}"`]: `"127.0.0.1"; .port = "${two}"`,
    });
    const file = join(dir, "node.vcl");
    await writeFile(file, text);
    const urlOf = (port: number): string => `http://127.0.0.1:${port}`;
    const port = await startProxy(t, {
      program: "varnishd",
      prepare: (port) => {
        const args = ["-n", join(dir, "varnish"), "-a", `127.0.0.1:${port}`, "-f", file];
        return Promise.resolve([...args, "-s", "malloc,32m", "-j", "none", "-F"]);
      },
      answers: async (port) => (await requestThrough({ url: urlOf(port), ca: undefined }, "/version")).status === 200,
    });
    return { url: urlOf(port), ca: undefined };
  },
};

/** Load balancers that check their nodes. */
export const checking: readonly BalancerKind[] = [haproxy, apache, caddy, varnish];

/** nginx, which has no active checks, with the servers of the page. */
export const nginx: BalancerKind = {
  name: "nginx",
  missing: whyNot("nginx", "-v"),
  forwardsGrpc: true,
  start: (t, nodes) =>
    startTls(t, "nginx", async ({ dir, cert, key }, port) => {
      const servers = nodes.map((node) => `server 127.0.0.1:${node} max_fails=2 fail_timeout=5s;`);
      const text = adapt(await readFile(files.nginx, "utf8"), {
        [`server 127.0.0.1:${defaults.rpcPort};`]: servers.join(" "),
        "listen 443 ": `listen 127.0.0.1:${port} `,
        // Not every machine has IPv6.
        "listen [::]:443 ssl http2;": "",
        "/etc/nginx/tls/gatehouse.crt": cert,
        "/etc/nginx/tls/gatehouse.key": key,
      });
      await writeFile(join(dir, "gatehouse.conf"), text);
      return await writeNginxConfiguration(dir, [`include ${dir}/gatehouse.conf;`]);
    }),
};
