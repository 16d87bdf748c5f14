/** Submits transactions over plain HTTP. */
import { sha256 } from "../../../src/base/crypto/hash.js";
import type { TestKey } from "./keys.js";
import { ask } from "../wire/plain-client.js";
import { type Operation, signTransaction } from "./transactions.js";
import { until } from "../nodes/until.js";

/** Submits an operation. Resolves to the hash of the transaction once a block includes it. */
export async function writeAs(key: TestKey, port: number, nonce: number, operation: Operation): Promise<string> {
  const { body, signature } = signTransaction(key, nonce, operation);
  const hash = sha256(body);
  const transaction = {
    body: Buffer.from(body).toString("base64"),
    signature: Buffer.from(signature).toString("base64"),
  };
  const headers = { "Content-Type": "application/json" };
  await ask(port, "/chain/transactions", { method: "POST", headers, body: JSON.stringify({ transaction }) });
  await until(async () => (await ask(port, `/chain/transactions/${hash}`)).text.includes('"included"'));
  return hash;
}
