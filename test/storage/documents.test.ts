/** Documents, from a submitted transaction through a block to a read over every protocol. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { connectEach, readFailure, rpcProtocols } from "../helpers/wire/rpc-clients.js";
import { until } from "../helpers/nodes/until.js";

const [authority, alice] = [testKey(1), testKey(2)];
const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const oneMiB = (extra: number): string => `"${"x".repeat(1024 * 1024 - 2 + extra)}"`;

/** Documents, each with the error if it is rejected. */
const documents: readonly (readonly [title: string, text: string, error?: RegExp])[] = [
  ["an array", '[1, 2.50,"three" ]'],
  ["a string", '"text"'],
  ["a number with a zero", "1.0"],
  ["a number beyond 64 bits", "12345678901234567890"],
  ["null", "null"],
  ["an empty object", "{ }"],
  ["an escaped NUL", '{"a":"\\u0000"}'],
  ["odd names", '{"__proto__":1,"constructor":2,"":3,"a.b":4,"a\\"b":5, "ключ":{"x":[ ]}}'],
  ["an escaped lone surrogate", '{"\\ud800":"\\udfff"}'],
  ["1 MiB", oneMiB(0)],
  ["64 levels", nested(64)],
  ["more than 1 MiB", oneMiB(1), /at most 1048576 bytes/],
  ["65 levels", nested(65), /nested deeper than 64/],
  ["a duplicate name", '{"a":1,"a":2}', /duplicate member names\.$/],
  ["an escaped duplicate name", '{"x":[{"a":1,"\\u0061":2}]}', /duplicate member names\.$/],
  ["invalid JSON", "{a:1}", /is not JSON/],
  ["no number", "NaN", /is not JSON/],
  ["an empty text", "", /is not JSON/],
  ["text after its end", "{} {}", /is not JSON/],
];

test("returns documents as they were written, and rejects invalid ones with the reason", async (t) => {
  const node = await startTestNode(t, { genesis: "genesis.json" }, await authorityDirectory(t, authority));
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  const clients = connectEach(node.port);
  t.teardown(() => Object.values(clients).forEach((client) => client.close()));
  for (const [i, [title, text, error]] of documents.entries()) {
    const nonce = i + 1;
    const transaction = signTransaction(alice, nonce, createPublic("document", text));
    if (error !== undefined) {
      const rejection = readFailure(await t.throwsAsync(chain.submitTransaction({ transaction }), undefined, title));
      t.is(rejection.reason, "INVALID_REQUEST", title);
      t.regex(rejection.message, error, title);
      continue;
    }
    await chain.submitTransaction({ transaction });
    let outcome = await chain.getTransaction({ hash: sha256(transaction.body) });
    await until(async () => {
      outcome = await chain.getTransaction({ hash: sha256(transaction.body) });
      return outcome.status !== TransactionStatus.PENDING;
    });
    t.is(outcome.status, TransactionStatus.INCLUDED, `${title}: ${outcome.reason}`);
    const storageAddress = programAddress(alice.publicKey, "document", BigInt(nonce), "");
    const program = await ask(node.port, `/storage-program/${storageAddress}`);
    t.true(program.text.includes(`"data":${text},"metadata":`), title);
    const all = await ask(node.port, `/storage-program/${storageAddress}/all`);
    t.true(all.text === `{"success":true,"storageAddress":"${storageAddress}","data":${text}}`, title);
    for (const protocol of rpcProtocols) {
      const { data } = (await clients[protocol].call(StorageService.method.getProgramData, {
        storageAddress,
      })) as never as {
        data: string;
      };
      t.true(data === text, `${title} over ${protocol}`);
    }
  }
});
