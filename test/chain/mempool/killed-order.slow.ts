/** Nodes that are killed while senders have several transactions in flight: acknowledged ones keep their order. */
import test from "ava";
import { join } from "node:path";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { prepareEngines } from "../../helpers/databases/databases.js";
import { testKey } from "../../helpers/chain/keys.js";
import { readFailure } from "../../helpers/wire/rpc-clients.js";
import { startNodeProcess } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import { chainClient, newProgram } from "../../helpers/chain/submit.js";
import { until } from "../../helpers/nodes/until.js";

const authority = testKey(1);
const senders = Array.from({ length: 6 }, (_, i) => testKey(10 + i));
const kills = 5;
const inFlight = 8;
const connections = 4;

const engines = await prepareEngines();

/** Sender with several transactions in flight. After a kill, it resends those that were not acknowledged. */
interface Sender {
  readonly key: (typeof senders)[number];
  nonce: number;
  unacknowledged: Transaction[];
}

for (const engine of engines.names) {
  test.serial(`${engine}: a node that is killed repeatedly includes every acknowledged transaction`, async (t) => {
    const dir = await authorityDirectory(t, authority);
    const url = await engines.createUrl(t, engine);
    const start = () => startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json"), "--database", url]);
    const acknowledged = new Set<string>();
    const sending: Sender[] = senders.map((key) => ({ key, nonce: 0, unacknowledged: [] }));
    const next = (sender: Sender): Transaction => {
      const nonce = ++sender.nonce;
      return newProgram(sender.key, nonce, `{"a":"${"x".repeat((nonce % 5) * 900)}"}`);
    };

    for (let round = 0; round < kills; round++) {
      const node = await start();
      const clients = Array.from({ length: connections }, () => chainClient(node));
      let isKilled = false;
      const enough = acknowledged.size + 60 + 7 * round;
      /** Submits a transaction. Returns false once the node was killed. */
      const submit = async (sender: Sender, transaction: Transaction): Promise<boolean> => {
        try {
          await clients[sender.nonce % connections]!.submitTransaction({ transaction });
          acknowledged.add(sha256(transaction.body));
          return true;
        } catch (error) {
          // The nonce of a resent transaction may be too low, because it was never acknowledged.
          const isRejected = !isKilled && readFailure(error).reason === "INVALID_REQUEST";
          return isRejected || (sender.unacknowledged.push(transaction), false);
        }
      };
      const runs = sending.map(async (sender) => {
        const toResend = sender.unacknowledged.splice(0);
        const loops = Array.from({ length: inFlight }, async () => {
          while (!isKilled && (await submit(sender, toResend.shift() ?? next(sender)))) {
            // Submits the next transaction.
          }
        });
        await Promise.all(loops);
        sender.unacknowledged.push(...toResend);
      });
      await until(() => acknowledged.size >= enough);
      node.child.kill("SIGKILL");
      isKilled = true;
      await Promise.all([node.ended, ...runs]);
    }

    const node = await start();
    const client = chainClient(node);
    for (const hash of acknowledged) {
      let response = await client.getTransaction({ hash });
      await until(async () => {
        response = await client.getTransaction({ hash });
        return response.status !== TransactionStatus.PENDING;
      });
      t.is(response.status, TransactionStatus.INCLUDED, response.reason);
    }
    t.log(`${acknowledged.size} acknowledged in ${kills} kills`);
  });
}
