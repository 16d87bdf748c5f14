import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that a system gives to connections and to those who ask for port 0, so that it gives none of these away. */
const ports = { from: 10_240, to: 32_768 } as const;

/** A port that nobody has at this moment, for those who take no 0, or who need the same one again later. */
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
