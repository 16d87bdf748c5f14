/** Attacks with large responses, and clients that read slowly, are many, or disconnect. */
import { request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Attack, type Attacks, attackerAddress, limitingRates, openSocket, repeat } from "./attack.js";
import { callAgain, readProgram } from "./calls.js";

/** Number of requests that a slow reader pipelines, and of bytes that it reads each second. */
const [askedAtOnce, readBytes] = [8, 1_024];

/** HTTP/1.1 connections that pipeline requests for a program, and read very slowly. */
function slowSockets(count: number, addresses: number): Attack {
  return {
    async harm({ port, program }, signal) {
      const ask = `GET /storage-program/${program}/all HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(askedAtOnce);
      const sockets = new Set<Socket>();
      let [opened, cut] = [0, 0];
      const open = (): void => {
        const socket = openSocket(port, attackerAddress(opened++ % addresses)).pause();
        sockets.add(socket);
        socket.write(ask);
        socket.once("close", () => {
          cut++;
          sockets.delete(socket);
        });
      };
      for (let tick = 0; !signal.aborted; tick++) {
        for (let i = 0; i < 20 && sockets.size < count; i++) {
          open();
        }
        if (tick % 50 === 0) {
          sockets.forEach((socket) => void socket.read(readBytes));
        }
        await sleep(20);
      }
      return { "sockets held": sockets.size, "sockets cut": cut };
    },
  };
}

export const readerAttacks: Attacks = {
  "400 slow readers, HTTP/1.1": slowSockets(400, 1),
  "1,000 slow readers, HTTP/1.1, 20 addresses": slowSockets(1_000, 20),
  "1,000 gRPC reads of a hot program at a time": {
    flags: limitingRates,
    async harm({ port, program }, signal) {
      const sessions = Array.from({ length: 10 }, () => callAgain(port, signal, readProgram(program), 100));
      const all = await Promise.all(sessions);
      const sum = (key: string): number => all.reduce((total, deeds) => total + deeds[key]!, 0);
      return { answered: sum("answered"), refused: sum("refused") };
    },
  },
  "getBlocks of 50 large blocks, two at a time": {
    heapMiB: 1_024,
    async harm({ port }, signal) {
      const call = { method: "nodeCall", params: [{ message: "getBlocks", data: { start: 1, limit: 50 } }] };
      const body = Buffer.from(JSON.stringify(call));
      let [answers, receivedBytes] = [0, 0];
      await repeat(2, signal, async () => {
        await new Promise<void>((resolve) => {
          const headers = { "Content-Type": "application/json" };
          const request = httpRequest({ host: "127.0.0.1", port, method: "POST", headers }, (response) => {
            response.on("data", (chunk: Buffer) => (receivedBytes += chunk.length)).once("close", resolve);
            response.once("end", () => answers++);
          });
          request.once("error", () => setTimeout(resolve, 50));
          request.end(body);
        });
      });
      return { answers, "received MiB": receivedBytes / 1024 ** 2 };
    },
  },
  "MCP clients that leave in mid-call": {
    async harm({ mcpPort }, signal) {
      const params = { name: "storage_searchPrograms", arguments: { q: "large" } };
      const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
      const types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
      const text = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n${types}Content-Length: ${call.length}\r\n\r\n${call}`;
      let left = 0;
      await repeat(32, signal, async () => {
        const socket = openSocket(mcpPort);
        socket.write(text);
        await sleep(left % 4);
        socket.destroy();
        left++;
      });
      return { "clients left": left };
    },
  },
};
