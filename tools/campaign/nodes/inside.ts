/**
 * Preloaded into each node process (`--import`). Shifts the clock by the milliseconds in a file, and connects to the
 * proxies of the campaign from an address of the node, which identifies the caller.
 */
import { readFileSync } from "node:fs";
import { Socket } from "node:net";

const { CAMPAIGN_CLOCK: clockFile, CAMPAIGN_FROM: from, CAMPAIGN_WIRES: wires = "" } = process.env;
const everyMs = 50;

if (clockFile !== undefined) {
  let offsetMs = 0;
  const read = (): void => {
    try {
      offsetMs = Number(readFileSync(clockFile, "utf8")) || 0;
    } catch {
      // The file does not exist yet, or is being written.
    }
  };
  read();
  setInterval(read, everyMs).unref();
  const realNow = Date.now.bind(Date);
  const now = (): number => realNow() + offsetMs;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args: unknown[], made) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, made) as Date,
    get: (target, name, receiver) => (name === "now" ? now : (Reflect.get(target, name, receiver) as unknown)),
  });
}

if (from !== undefined) {
  const ports = new Set(wires.split(",").map(Number));
  const connect: unknown = Reflect.get(Socket.prototype, "connect");
  const connectFrom = function (this: Socket, ...args: unknown[]): unknown {
    // Node.js calls connect in two forms: with options, or with a normalized array of options and listener.
    const options = (Array.isArray(args[0]) ? args[0][0] : args[0]) as { port?: unknown; localAddress?: string } | null;
    if (typeof options === "object" && options !== null && ports.has(Number(options.port))) {
      options.localAddress ??= from;
    }
    return Reflect.apply(connect as (...all: unknown[]) => unknown, this, args);
  };
  Socket.prototype.connect = connectFrom as Socket["connect"];
}
