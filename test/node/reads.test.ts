/** Lists, histories and searches over plain HTTP: visibility for each caller, and rejected page tokens. */
import test from "ava";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { programAddress } from "../../src/base/program-address.js";
import { callerOf } from "../helpers/process/caller.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const owner = testKey(2);
const open = programAddress(owner.publicKey, "open notes", 1n, "");
const secret = programAddress(owner.publicKey, "secret notes", 2n, "");

const operations: readonly Operation[] = [
  createPublic("open notes", '{"a":1}'),
  { case: "createProgram", value: { programName: "secret notes", access: { mode: AccessMode.OWNER } } },
  { case: "setField", value: { storageAddress: open, field: "a", value: "2" } },
  { case: "setField", value: { storageAddress: secret, field: "b", value: '"hush"' } },
];

interface Listed {
  readonly transactions: readonly { hash: string; blockNumber: number; body?: { sender: string } }[];
  readonly nextPageToken?: string;
}

test("lists and searches show strangers public data, and owners all of their data", async (t) => {
  const { port } = await startMember(t);
  const hashes: string[] = [];
  for (const [i, operation] of operations.entries()) {
    const transaction = signTransaction(owner, i + 1, operation);
    const body = {
      transaction: {
        body: Buffer.from(transaction.body).toString("base64"),
        signature: Buffer.from(transaction.signature).toString("base64"),
      },
    };
    const headers = { "Content-Type": "application/json" };
    t.is((await ask(port, "/chain/transactions", { method: "POST", body: JSON.stringify(body), headers })).status, 200);
    const hash = sha256(transaction.body);
    hashes.push(hash);
    await until(
      async () => (await askJson<{ status: string }>(port, `/chain/transactions/${hash}`)).status === "included",
    );
  }
  const [opened, closed, changed, changedSecretly] = hashes as [string, string, string, string];
  const mine = async <T>(path: string): Promise<T> =>
    JSON.parse((await ask(port, path, { headers: callerOf(owner).headers() })).text) as T;
  const hashesOf = ({ transactions }: Listed): string[] => transactions.map(({ hash }) => hash);

  // Everyone sees the hashes of transactions; only readers of the program see the bodies and senders.
  const all = await askJson<Listed & { fromBlock: number }>(port, "/chain/transactions");
  t.deepEqual(hashesOf(all), [...hashes].reverse());
  t.is(all.fromBlock, 1);
  t.deepEqual(
    all.transactions.map(({ body }) => body !== undefined),
    [false, true, false, true],
  );
  t.true(
    (await mine<Listed>("/chain/transactions")).transactions.every(({ body }) => body?.sender === owner.publicKey),
  );
  const ofOwner = `/chain/transactions?sender=${owner.publicKey}`;
  t.deepEqual(hashesOf(await askJson<Listed>(port, ofOwner)), [changed, opened]);
  t.deepEqual(hashesOf(await mine<Listed>(ofOwner)), [...hashes].reverse());
  const first = await askJson<Listed>(port, `${ofOwner}&pageSize=1`);
  t.deepEqual(hashesOf(first), [changed]);
  const second = await askJson<Listed>(port, `${ofOwner}&pageSize=1&pageToken=${first.nextPageToken!}`);
  t.deepEqual([hashesOf(second), second.nextPageToken], [[opened], undefined]);
  const { blockNumber } = all.transactions.find(({ hash }) => hash === closed)!;
  t.deepEqual(hashesOf(await askJson<Listed>(port, `${ofOwner}&blockNumber=${blockNumber}`)), []);

  // The history of a program follows its access rule.
  type History = {
    success: boolean;
    changes: { kind: string; fields: string[]; transactionHash: string; sender: string }[];
    historyFromBlock: number;
  };
  const history = await askJson<History>(port, `/storage-program/${open}/history`);
  t.deepEqual(
    history.changes.map(({ kind, fields, transactionHash }) => [kind, fields, transactionHash]),
    [
      ["set_field", ["a"], changed],
      ["create_program", [], opened],
    ],
  );
  t.is(history.historyFromBlock, 1);
  t.is((await ask(port, `/storage-program/${secret}/history`)).status, 404);
  t.deepEqual(
    (await mine<History>(`/storage-program/${secret}/history`)).changes.map(({ transactionHash }) => transactionHash),
    [changedSecretly, closed],
  );

  // A search finds a private program only for its owner.
  const found = async (q: string, get: <T>(path: string) => Promise<T> = (path) => askJson(port, path)) =>
    (
      await get<{ results: { kind: string; program?: { storageAddress: string } }[] }>(
        `/search?q=${encodeURIComponent(q)}`,
      )
    ).results;
  t.deepEqual(await found(secret), []);
  t.deepEqual(await found("secret notes"), []);
  t.deepEqual(
    (await found(secret, mine)).map(({ program }) => program?.storageAddress),
    [secret],
  );
  t.deepEqual(
    (await found("notes")).map(({ program }) => program?.storageAddress),
    [open],
  );
  t.deepEqual(
    (await found("Notes", mine)).map(({ program }) => program?.storageAddress),
    [secret, open],
  );
  t.deepEqual(
    (await found(closed)).map(({ kind }) => kind),
    ["transaction"],
  );
  t.deepEqual(
    (await found(owner.publicKey.slice(2).toUpperCase())).map(({ kind }) => kind),
    ["identity"],
  );
  t.deepEqual(
    (await found("1")).map(({ kind }) => kind),
    ["block"],
  );
  t.deepEqual(await found("999"), []);

  // A page token names a program that the caller may see; any other token is invalid.
  const tokenOf = (address: string): string => Buffer.from(`programs.${address}`).toString("base64url");
  const page = `/storage-program/owner/${owner.publicKey}?limit=1`;
  const owned = await mine<{ programs: { storageAddress: string }[]; nextPageToken: string }>(page);
  t.deepEqual([owned.programs[0]!.storageAddress, owned.nextPageToken], [secret, tokenOf(secret)]);
  const next = await mine<typeof owned>(`${page}&pageToken=${owned.nextPageToken}`);
  t.deepEqual([next.programs[0]!.storageAddress, next.nextPageToken], [open, undefined]);
  t.false("nextPageToken" in (await askJson<object>(port, page)), "the number of hidden programs is not visible");
  for (const address of [secret, `stor-${"0".repeat(40)}`]) {
    const { status, text } = await ask(port, `${page}&pageToken=${tokenOf(address)}`);
    t.is(status, 400, text);
  }
});

test("accepts `latest` wherever it accepts a block number", async (t) => {
  const { port } = await startMember(t);
  t.is((await ask(port, "/chain/blocks/latest")).status, 404, "the genesis has no transactions");
  t.deepEqual(await askJson(port, "/chain/blocks"), { blocks: [] });
  const root = await askJson(port, "/zk/merkle-root");
  t.deepEqual(await askJson(port, "/zk/merkle-root?block=latest"), root);
  t.is((await ask(port, "/state/proof?block=latest&withCommitments=true")).status, 200);
  const call = { jsonrpc: "2.0", id: 1, method: "zk.getMerkleRoot", params: { block: "latest" } };
  const headers = { "Content-Type": "application/json" };
  const { text } = await ask(port, "/", { method: "POST", body: JSON.stringify(call), headers });
  t.deepEqual((JSON.parse(text) as { result: unknown }).result, root);
  t.is((await ask(port, "/chain/blocks/newest")).status, 400);
  const { paths } = await askJson<{ paths: Record<string, { get: { parameters: { schema: object }[] } }> }>(
    port,
    "/openapi.json",
  );
  t.true(JSON.stringify(paths["/chain/blocks/{number}"]!.get.parameters[0]!.schema).includes('"latest"'));
});

test("rejects invalid page tokens and sizes with 400", async (t) => {
  const { port } = await startMember(t);
  const token = (text: string): string => Buffer.from(text, "latin1").toString("base64url");
  for (const bad of [
    "x",
    "%00",
    token("blocks"),
    token("blocks.-1"),
    token("blocks.1.2"),
    token("blocks.01"),
    "A".repeat(5_000),
  ]) {
    t.is((await ask(port, `/chain/blocks?pageToken=${bad}`)).status, 400, bad);
    t.is((await ask(port, `/chain/transactions?pageToken=${bad}`)).status, 400, bad);
  }
  t.is((await ask(port, `/chain/transactions?pageToken=${token("transactions.1.999999999999999")}`)).status, 400);
  for (const path of [
    "/chain/blocks?pageSize=0",
    "/chain/transactions?pageSize=201",
    "/search?q=",
    `/search?q=${"x".repeat(257)}`,
  ]) {
    t.is((await ask(port, path)).status, 400, path);
  }
});
