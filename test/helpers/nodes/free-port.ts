import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** A range below the ephemeral ports, so that the system does not assign these ports. */
const ports = { from: 10_240, to: 32_768 } as const;

/** Returns a free port, for programs that do not accept port 0, or that need the same port again later. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(ports.from, ports.to);
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
