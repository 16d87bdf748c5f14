/**
 * Loaded into each node before it starts (`--import`): shifts its clock by as many milliseconds as a file says, and makes
 * it call the wires of the campaign from an address of its own, by which they know who calls.
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
      // It is written anew just now, or was never written.
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
    // Both forms in which Node.js itself calls it: options, or options and a listener that were put in order before.
    const options = (Array.isArray(args[0]) ? args[0][0] : args[0]) as { port?: unknown; localAddress?: string } | null;
    if (typeof options === "object" && options !== null && ports.has(Number(options.port))) {
      options.localAddress ??= from;
    }
    return Reflect.apply(connect as (...all: unknown[]) => unknown, this, args);
  };
  Socket.prototype.connect = connectFrom as Socket["connect"];
}
