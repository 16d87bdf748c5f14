/** Responses stay below the size limit of clients in every protocol, and state how to continue. */
import { createClient } from "@connectrpc/connect";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { type GetInfoResponse, InfoService, type ListPeersResponse } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { maxResponseBytes } from "../../src/base/limits/response-limits.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, jsonPost } from "../helpers/wire/plain-client.js";
import { connectEach } from "../helpers/wire/rpc-clients.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { insertProgram, seedDatabase } from "../helpers/chain/seed.js";
import { sampleGenesis, startTestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const alice = testKey(2);
const addressOf = (n: number): string => `stor-${n.toString(16).padStart(40, "0")}`;

const post = async (port: number, body: unknown): Promise<{ answer: unknown; bytes: number }> => {
  const { text } = await ask(port, "/", jsonPost(body));
  return { answer: JSON.parse(text), bytes: Buffer.byteLength(text) };
};

test("lists a very large number of peers in pages", async (t) => {
  const dir = await temporaryDirectory(t);
  const count = 9_000;
  const urlOf = (i: number): string => `https://${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${i}.invalid:9`;
  const urls = Array.from({ length: count }, (_, i) => urlOf(i));
  await writeFile(join(dir, "peers.json"), JSON.stringify(urls.map((url) => ({ url }))));
  const flags = { genesis: sampleGenesis, peers: "peers.json", "loop-interval": "3600" };
  const { port, rpcUrl, control } = await startTestNode(t, flags, dir);

  for (const [protocol, client] of Object.entries(connectEach(port))) {
    t.teardown(() => client.close());
    const listed: string[] = [];
    let offset: number | undefined = 0;
    let parts = 0;
    while (offset !== undefined) {
      const { peers, nextOffset }: ListPeersResponse = (await client.call(InfoService.method.listPeers, {
        offset,
      })) as ListPeersResponse;
      listed.push(...peers.map(({ connection }) => connection!.connectionString));
      offset = nextOffset;
      parts++;
    }
    t.deepEqual(listed, urls, protocol);
    t.true(parts > 1, protocol);
    const { peerlist, nextPeerOffset } = (await client.call(InfoService.method.getInfo, {})) as GetInfoResponse;
    t.true(nextPeerOffset !== undefined && peerlist.length === nextPeerOffset, protocol);
  }

  for (const next of [
    async (offset: number) => (await ask(port, `/peerlist?offset=${offset}`)).text,
    async (offset: number) => {
      const params = [{ message: "getPeerlist", data: { offset } }];
      const { answer } = await post(port, { method: "nodeCall", params });
      return JSON.stringify((answer as { response: unknown }).response);
    },
  ]) {
    const listed: string[] = [];
    for (let part: string[] = [""]; part.length > 0; listed.push(...part)) {
      const text = await next(listed.length);
      t.true(Buffer.byteLength(text) <= maxResponseBytes);
      part = (JSON.parse(text) as { connection: { string: string } }[]).map(({ connection }) => connection.string);
    }
    t.deepEqual(listed, urls);
  }
  t.true(Buffer.byteLength((await ask(port, "/info")).text) <= maxResponseBytes);

  const { nextOffset, entries } = await createClient(ControlService, control).listBook({});
  t.true(nextOffset !== undefined && entries.length === nextOffset);
  const book = await runCli(["peers", "book", "--json", "--data-dir", dir]);
  t.deepEqual(
    (JSON.parse(book.stdout) as { endpoint: string }[]).map(({ endpoint }) => endpoint),
    urls,
  );
  const list = await runCli(["peers", "list", "--json", "--node", rpcUrl]);
  t.is((JSON.parse(list.stdout) as unknown[]).length, count);
});

test("returns two hundred programs with the longest names, and their document, in every protocol", async (t) => {
  const dir = await temporaryDirectory(t);
  const longest = "\u0001".repeat(256);
  const names = Array.from({ length: 170 }, (_, i) => String(i).padEnd(1_000, "\u0001"));
  const fields = names.map((name) => [name, "number", "0"] as const);
  const data = JSON.stringify(Object.fromEntries(names.map((name) => [name, 0])));
  t.true(data.length > 1_000_000 && data.length <= 1024 * 1024, String(data.length));
  await seedDatabase(dir, async (database) => {
    for (let n = 0; n < 200; n++) {
      const program = { address: addressOf(n), owner: alice.publicKey, name: longest, type: "null", createdMs: n };
      await insertProgram(database, { ...program, mode: "public" });
    }
    const names = { address: addressOf(200), owner: testKey(3).publicKey, name: "names", type: "object", createdMs: 1 };
    await insertProgram(database, { ...names, mode: "public", data, fields });
  });
  const { port } = await startTestNode(t, {}, dir);
  const { listProgramsByOwner, searchPrograms, listFields } = StorageService.method;
  for (const [protocol, client] of Object.entries(connectEach(port))) {
    t.teardown(() => client.close());
    const listed = await client.call(listProgramsByOwner, { owner: alice.publicKey, limit: 200 });
    const found = await client.call(searchPrograms, { query: longest, limit: 200 });
    t.like(listed, { count: 200 }, protocol);
    t.like(found, { count: 200 }, protocol);
    t.deepEqual(
      (await client.call(listFields, { storageAddress: addressOf(200) })) as unknown as { fields: string[] },
      { $typeName: listFields.output.typeName, success: true, storageAddress: addressOf(200), fields: names },
      protocol,
    );
  }
  for (const path of [
    `/storage-program/owner/${alice.publicKey}?limit=200`,
    `/storage-program/search?q=${encodeURIComponent(longest)}&limit=200`,
    `/storage-program/${addressOf(200)}/fields`,
  ]) {
    const { status, text } = await ask(port, path);
    t.is(status, 200);
    t.true(Buffer.byteLength(text) <= maxResponseBytes);
  }
});

interface BatchAnswer {
  readonly id: number;
  readonly result?: { readonly data?: string };
  readonly error?: { readonly code: number; readonly data: { readonly reason: string } };
}

test("rejects the requests of a batch that exceed the response limit, so that another batch can repeat them", async (t) => {
  const dir = await temporaryDirectory(t);
  const data = JSON.stringify("x".repeat(1_000_000));
  await seedDatabase(dir, (database) =>
    insertProgram(database, {
      ...{ address: addressOf(1), owner: alice.publicKey, name: "large", type: "string", createdMs: 1 },
      mode: "public",
      data,
    }),
  );
  const { port } = await startTestNode(t, {}, dir);
  const large = { jsonrpc: "2.0", method: "storage.getProgramData", params: [addressOf(1)] };
  const small = { jsonrpc: "2.0", method: "info.getVersion" };
  let requests = Array.from({ length: 9 }, (_, id) => ({ ...(id % 3 === 2 ? small : large), id }));
  const answeredIds: number[][] = [];
  while (requests.length > 0) {
    const { answer: response, bytes } = await post(port, requests);
    const answer = response as BatchAnswer[];
    t.true(bytes <= maxResponseBytes, String(bytes));
    t.deepEqual(
      answer.map(({ id }) => id),
      requests.map(({ id }) => id),
    );
    const rejected = answer.filter(({ error }) => error !== undefined);
    t.true(rejected.every(({ error }) => error!.code === -32000 && error!.data.reason === "ANSWER_TOO_LARGE"));
    answeredIds.push(answer.filter(({ error }) => error === undefined).map(({ id }) => id));
    requests = requests.filter(({ id }) => rejected.some((one) => one.id === id));
  }
  t.deepEqual(answeredIds, [
    [0, 1, 2, 3, 4, 5],
    [6, 7, 8],
  ]);

  // A notification gets no response, even if the limit is reached.
  const quiet = await post(port, [
    ...Array.from({ length: 5 }, (_, id) => ({ ...large, id })),
    large,
    { ...small, id: 9 },
  ]);
  t.deepEqual(
    (quiet.answer as BatchAnswer[]).map(({ id, error }) => [id, error?.data.reason]),
    [
      [0, undefined],
      [1, undefined],
      [2, undefined],
      [3, undefined],
      [4, "ANSWER_TOO_LARGE"],
      [9, "ANSWER_TOO_LARGE"],
    ],
  );
});
