/** Attacks with HTTP/1.1 connections and requests. */
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { ask } from "../../../test/helpers/wire/plain-client.js";
import { type Attack, attackerAddress, type Attacks, openSocket, repeat, type Target, untilAborted } from "./attack.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";

/** Number of concurrent requests. */
function posts(path: string, body: () => Buffer, headers: (target: Target) => Record<string, string>): Attack {
  return {
    async harm(target, signal) {
      const bytes = body();
      await repeat(8, signal, async () => {
        // The response may be a rejection before the body is sent.
        const request = { method: "POST", body: bytes, headers: headers(target) };
        await ask(target.port, path, request, { localAddress: attackerAddress(0) }).catch(() => undefined);
      });
      return undefined;
    },
  };
}

export const requestAttacks: Attacks = {
  "nobody misbehaves": {
    async harm(_, signal) {
      await untilAborted(signal);
      return undefined;
    },
  },
  "10,000 half-open connections": {
    async harm({ port }, signal) {
      for (let i = 0; i < 10_000 && !signal.aborted; i++) {
        openSocket(port);
        if (i % 50 === 0) {
          await sleep(5);
        }
      }
      await untilAborted(signal);
      return undefined;
    },
  },
  "requests that never end": {
    async harm({ port }, signal) {
      const sockets = Array.from({ length: 1_000 }, () => openSocket(port));
      sockets.forEach((socket) => socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"));
      while (!signal.aborted) {
        sockets.forEach((socket) => socket.writable && socket.write("a"));
        await sleep(50);
      }
      return { "requests open": sockets.filter(({ writable }) => writable).length };
    },
  },
  "compressed bombs": posts(
    getVersion,
    () => gzipSync(Buffer.alloc(64 * 1024 * 1024)),
    () => ({ "Content-Type": "application/json", "Content-Encoding": "gzip" }),
  ),
  "bodies of 1 MB that are no JSON": posts(
    "/",
    () => Buffer.alloc(1_000_000, "["),
    () => ({ "Content-Type": "application/json" }),
  ),
  "headers of 12 kB": posts(
    "/version",
    () => Buffer.alloc(0),
    () => ({ X: "x".repeat(12_000) }),
  ),
  "forged signatures": posts(
    "/",
    () => Buffer.from("{}"),
    ({ genesisHash }) => ({
      identity: `ed25519:0x${"1".repeat(64)}`,
      timestamp: String(Date.now()),
      network: genesisHash,
      signature: "0".repeat(128),
    }),
  ),
};
