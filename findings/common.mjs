// Functions of the findings that start servers and programs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

/** Listens on a free port of the loopback interface, and returns the port. */
export async function listen(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

/** Returns a port that was free a moment ago, for programs that cannot choose one. */
export async function freePort() {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  return port;
}

/** Writes a configuration file in the temporary folder, and returns its path. */
export function file(name, text) {
  mkdirSync("config", { recursive: true, mode: 0o755 });
  writeFileSync(`config/${name}`, text);
  return `${process.cwd()}/config/${name}`;
}

async function accepts(port) {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Starts a program that ends with this process, and waits up to 10 s until it accepts connections. */
export async function start(port, command, ...args) {
  const child = spawn(command, args, { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // The program has ended by itself.
    }
  };
  process.on("exit", stop);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
  let log = "";
  child.stderr.on("data", (data) => (log += data));
  for (let tries = 0; tries < 100; tries++) {
    if (await accepts(port)) return stop;
    await sleep(100);
  }
  throw new Error(`${command} does not listen on ${port}: ${log}`);
}

/**
 * Starts a server of @grpc/grpc-js with one method, whose messages are texts, and a client of it.
 *
 * @param grpc the package, which the finding imports.
 */
export async function grpcPair(grpc, handle) {
  const method = {
    path: "/finding.Texts/Call",
    requestStream: false,
    responseStream: false,
    requestSerialize: Buffer.from,
    requestDeserialize: String,
    responseSerialize: Buffer.from,
    responseDeserialize: String,
  };
  const server = new grpc.Server();
  server.addService({ call: method }, { call: handle });
  const port = await new Promise((resolve, reject) => {
    const bound = (error, number) => (error ? reject(error) : resolve(number));
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), bound);
  });
  const Client = grpc.makeGenericClientConstructor({ call: method }, "Texts");
  return { port, client: new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure()) };
}

/** Starts nginx with one location in front of a port, and returns its port. */
export async function nginx(location) {
  const port = await freePort();
  const folder = `${process.cwd()}/config`;
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const config = `
    daemon off; user root; pid ${folder}/nginx.pid; error_log stderr; events {}
    http { access_log off; ${paths.join(" ")}
      server { listen 127.0.0.1:${port}; location / { ${location} } } }`;
  await start(port, "/usr/sbin/nginx", "-e", "stderr", "-c", file("nginx.conf", config));
  return port;
}

/** Starts haproxy in front of a port, with additional lines in its section "defaults", and returns its port. */
export async function haproxy(upstream, defaults = "") {
  const port = await freePort();
  const config = `defaults
  mode http
  timeout connect 2s
  timeout client 20s
  timeout server 20s
  ${defaults}
listen node
  bind 127.0.0.1:${port}
  server one 127.0.0.1:${upstream}
`;
  await start(port, "/usr/sbin/haproxy", "-db", "-f", file(`haproxy-${port}.cfg`, config));
  return port;
}

/** Starts Apache with the given modules and lines, which must contain "PORT" where it listens; returns the port. */
export async function apache(modules, lines) {
  const port = await freePort();
  const load = ["mpm_event", "authz_core", "proxy", ...modules].map(
    (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
  );
  const folder = `${process.cwd()}/config`;
  const config = `${load.join("\n")}
ServerName localhost
PidFile ${folder}/apache.pid
ErrorLog ${folder}/apache.log
DefaultRuntimeDir ${folder}
Listen 127.0.0.1:${port}
${lines}
`;
  await start(port, "/usr/sbin/apache2", "-D", "FOREGROUND", "-d", "/etc/apache2", "-f", file("apache.conf", config));
  return port;
}

/** Starts Caddy in front of a port, and returns its port. */
export async function caddy(upstream) {
  const port = await freePort();
  const config = `{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  reverse_proxy http://127.0.0.1:${upstream}
}
`;
  await start(
    port,
    "/usr/bin/env",
    "HOME=" + process.cwd(),
    "caddy",
    "run",
    "--adapter",
    "caddyfile",
    "--config",
    file("Caddyfile", config),
  );
  return port;
}
