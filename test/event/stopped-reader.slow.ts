/**
 * Who stops reading for a while costs the node no memory, and goes on where he was: on the same connection, or, where he
 * stopped for long, on another one after the last message that he has. EVENT_STOPPED_S=600 and
 * EVENT_CHANGES=10000 make it longer.
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

const stoppedS = Number(process.env.EVENT_STOPPED_S ?? 3);
const changes = Number(process.env.EVENT_CHANGES ?? 300);
/** What all of them have not read is more than the node may hold, where it is of many changes. */
const readers = 20;
const [authority, alice] = [testKey(1), testKey(2)];

interface Reader {
  /** Those of blocks and programs, in the order in which they came. */
  readonly cursors: readonly string[];
  /** How often the node has ended it. */
  readonly cuts: number;
  stop(): void;
  goOn(): void;
}

/** Reads on a bare socket; where that is ended, goes on after the last message that it has. */
function listen(t: ExecutionContext, port: number): Reader {
  const cursors: string[] = [];
  let socket: Socket;
  let [last, cuts, isOver] = ["", 0, false];
  t.teardown(() => {
    isOver = true;
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
        if (!isOver) {
          cuts++;
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
    get cuts() {
      return cuts;
    },
    stop: () => socket.pause(),
    goOn: () => socket.resume(),
  };
}

/** Memory of a process in MiB. */
async function residentOf(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

const testLinux = process.platform === "linux" ? test : test.skip;
testLinux(`${readers} readers that stop for a while cost no memory, and go on where they were`, async (t) => {
  t.timeout(60 * 60_000);
  const { genesis } = networkOf(authority);
  const flags = { "rate-limit": "0", "sender-bytes-per-minute": "0", "sender-programs-per-minute": "0" };
  const node = await startProcessOf(t, { key: authority, genesis, seeds: [silentPeer], flags });
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.port}` }));
  const storageAddress = programAddress(alice.publicKey, "told", 1n, "");
  let nonce = 0;
  let hash = "";
  const submit = async (): Promise<void> => {
    const operation =
      ++nonce === 1
        ? createPublic("told", "{}")
        : { case: "setField" as const, value: { storageAddress, field: `${"f".repeat(200)}${nonce % 5}`, value: "1" } };
    ({ hash } = await chain.submitTransaction({ transaction: signTransaction(alice, nonce, operation) }));
  };
  while (nonce < 50) {
    await submit();
  }
  const all = Array.from({ length: readers }, () => listen(t, node.port));
  await until(() => Promise.resolve(all.every(({ cursors }) => cursors.length > 10)), "everybody hears");
  for (const reader of all) {
    reader.stop();
  }
  const heard = all.map(({ cursors }) => cursors.length);
  const before = await residentOf(node.child.pid!);
  const stoppedAtMs = Date.now();
  while (nonce < changes) {
    await submit();
  }
  await sleep(Math.max(0, stoppedAtMs + stoppedS * 1_000 - Date.now()));
  const after = await residentOf(node.child.pid!);
  t.log(
    `stopped for ${Math.round((Date.now() - stoppedAtMs) / 1_000)} s, ${before.toFixed(0)} -> ${after.toFixed(0)} MiB`,
  );
  t.deepEqual(
    all.map(({ cursors }) => cursors.length),
    heard,
  );
  t.true(after - before < 64, `${before} MiB, then ${after} MiB`);
  for (const reader of all) {
    reader.goOn();
  }
  await until(async () => (await chain.getTransaction({ hash })).blockNumber !== undefined, "all is in blocks");
  await until(async () => {
    const { number } = await headOf(node);
    return all.every(({ cursors }) => cursors.at(-1) === String(number));
  }, "everybody has heard all");
  t.log(`cut ${all.reduce((sum, { cuts }) => sum + cuts, 0)} times`);
  const expected = all[0]!.cursors;
  t.true(expected.filter((cursor) => cursor.includes(".")).length >= changes);
  t.is(new Set(expected).size, expected.length);
  const places = expected.map((cursor) => cursor.split(".").map(Number));
  t.true(
    places.every(([block, place = Infinity], i) => {
      const [lastBlock, lastPlace = Infinity] = places[i - 1] ?? [0, 0];
      return i === 0 || block! > lastBlock! || (block === lastBlock && place > lastPlace);
    }),
  );
  for (const { cursors } of all) {
    t.deepEqual(cursors, expected);
  }
});
