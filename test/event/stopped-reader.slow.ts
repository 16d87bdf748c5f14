/**
 * Readers of an event stream that pause for a while use no memory on the node, and then miss no event. They resume on
 * the same connection, or after a long pause on a new one. EVENT_STOPPED_S=600 and EVENT_CHANGES=10000 run longer.
 */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test, { type ExecutionContext } from "ava";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { testKey } from "../helpers/chain/keys.js";
import { headOf, networkOf, startProcessOf } from "../helpers/nodes/network.js";
import { silentPeer } from "../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const pausedS = Number(process.env.EVENT_STOPPED_S ?? 3);
const changes = Number(process.env.EVENT_CHANGES ?? 300);
/** Number of readers. With many changes, all their unread events together would exceed the node's memory limit. */
const readers = 20;
const [authority, alice] = [testKey(1), testKey(2)];

interface Reader {
  /** Cursors of the received block and program events, in order. */
  readonly cursors: readonly string[];
  /** Number of times that the node has closed the connection. */
  readonly disconnects: number;
  pause(): void;
  resume(): void;
}

/** Reads the event stream on a TCP socket. Reconnects after the last message if the node closes the connection. */
function listen(t: ExecutionContext, port: number): Reader {
  const cursors: string[] = [];
  let socket: Socket;
  let [last, disconnects, isStopped] = ["", 0, false];
  t.teardown(() => {
    isStopped = true;
    socket.destroy();
  });

  function open(): void {
    const from = last === "" ? "fromBlock=1" : `from=${last}`;
    let rest = "";
    socket = connect(port, "127.0.0.1");
    socket.setEncoding("utf8").on("data", (piece: string) => {
      const lines = (rest + piece).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const [, cursor, kind] = /^\{"cursor":"([\d.]+)","blockNumber":\d+,"(\w+)"/.exec(line) ?? [];
        last = cursor ?? last;
        if (kind === "program" || kind === "block") {
          cursors.push(last);
        }
      }
    });
    socket
      .on("error", () => undefined)
      .on("close", () => {
        if (!isStopped) {
          disconnects++;
          open();
        }
      });
    socket.write(
      `GET /events?${from}&kinds=program&kinds=block HTTP/1.1\r\nHost: a\r\nAccept: application/jsonl\r\n\r\n`,
    );
  }

  open();
  return {
    cursors,
    get disconnects() {
      return disconnects;
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  };
}

/** Returns the resident memory of a process in MiB. */
async function residentOf(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

const testLinux = process.platform === "linux" ? test : test.skip;
testLinux(
  `${readers} readers that pause use no memory on the node, and receive all events once they resume`,
  async (t) => {
    t.timeout(60 * 60_000);
    const { genesis } = networkOf(authority);
    const flags = { "rate-limit": "0", "sender-bytes-per-minute": "0", "sender-programs-per-minute": "0" };
    const node = await startProcessOf(t, { key: authority, genesis, seeds: [silentPeer], flags });
    const chain = createClient(ChainService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.port}` }));
    const storageAddress = programAddress(alice.publicKey, "changing", 1n, "");
    let nonce = 0;
    let hash = "";
    const submit = async (): Promise<void> => {
      const operation =
        ++nonce === 1
          ? createPublic("changing", "{}")
          : {
              case: "setField" as const,
              value: { storageAddress, field: `${"f".repeat(200)}${nonce % 5}`, value: "1" },
            };
      ({ hash } = await chain.submitTransaction({ transaction: signTransaction(alice, nonce, operation) }));
    };
    while (nonce < 50) {
      await submit();
    }
    const all = Array.from({ length: readers }, () => listen(t, node.port));
    await until(() => Promise.resolve(all.every(({ cursors }) => cursors.length > 10)), "all readers receive events");
    for (const reader of all) {
      reader.pause();
    }
    const receivedCounts = all.map(({ cursors }) => cursors.length);
    const beforeMib = await residentOf(node.child.pid!);
    const pausedAtMs = Date.now();
    while (nonce < changes) {
      await submit();
    }
    await sleep(Math.max(0, pausedAtMs + pausedS * 1_000 - Date.now()));
    const afterMib = await residentOf(node.child.pid!);
    const elapsedS = Math.round((Date.now() - pausedAtMs) / 1_000);
    t.log(`paused for ${elapsedS} s, ${beforeMib.toFixed(0)} -> ${afterMib.toFixed(0)} MiB`);
    t.deepEqual(
      all.map(({ cursors }) => cursors.length),
      receivedCounts,
    );
    t.true(afterMib - beforeMib < 64, `${beforeMib} MiB, then ${afterMib} MiB`);
    for (const reader of all) {
      reader.resume();
    }
    await until(async () => (await chain.getTransaction({ hash })).blockNumber !== undefined, "all is in blocks");
    await until(async () => {
      const { number } = await headOf(node);
      return all.every(({ cursors }) => cursors.at(-1) === String(number));
    }, "all readers have received all events");
    t.log(`disconnected ${all.reduce((sum, { disconnects }) => sum + disconnects, 0)} times`);
    const expected = all[0]!.cursors;
    t.true(expected.filter((cursor) => cursor.includes(".")).length >= changes);
    t.is(new Set(expected).size, expected.length);
    const positions = expected.map((cursor) => cursor.split(".").map(Number));
    t.true(
      positions.every(([block, position = Infinity], i) => {
        const [lastBlock, lastPosition = Infinity] = positions[i - 1] ?? [0, 0];
        return i === 0 || block! > lastBlock! || (block === lastBlock && position > lastPosition);
      }),
    );
    for (const { cursors } of all) {
      t.deepEqual(cursors, expected);
    }
  },
);
