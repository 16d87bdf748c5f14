/** Nodes of the contract suite: one with peers, genesis and data, and an empty one; in cleartext or over TLS. */
import { createClient } from "@connectrpc/connect";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, ConsensusService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createMempoolStore } from "../../src/chain/blocks/mempool-store.js";
import { silentPeer, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { openChain } from "../helpers/chain/chain.js";
import { genesisOf, testKey, writeKey } from "../helpers/chain/keys.js";
import { signedHead } from "../helpers/chain/heads.js";
import { notaryKey } from "../helpers/process/presentation.js";
import { insertProgram, insertProgramLeaves, seedDatabase } from "../helpers/chain/seed.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { connectTransport, type Target, type TransportName } from "../helpers/wire/transports.js";
import { until } from "../helpers/nodes/until.js";
import type { NodeName } from "./case.js";
import { authorities, blocks, blockTimeMs, lastBlock, lastBlockTimeMs, programs, rejectedHash } from "./data.js";

/** Both nodes. */
export type ContractNodes = Readonly<Record<NodeName, ContractNode>>;

/** Node with the certificate that its clients trust. */
export interface ContractNode extends Target {
  readonly node: TestNode;
}

/** Starts both nodes in cleartext. */
export async function startContractNodes(t: Teardown): Promise<ContractNodes> {
  return startBoth(t, await seedMember(t));
}

/** Starts both nodes twice from one seed: without and with these flags. */
export async function startContractNodesTwice(
  t: Teardown,
  flags: Readonly<Record<string, string>>,
): Promise<[plain: ContractNodes, flagged: ContractNodes]> {
  const [dir, copy] = [await seedMember(t), await temporaryDirectory(t)];
  await cp(dir, copy, { recursive: true });
  return [await startBoth(t, dir), await startBoth(t, copy, flags)];
}

/** Creates a directory with the member's database, key, genesis and peers. */
async function seedMember(t: Teardown): Promise<string> {
  const dir = await temporaryDirectory(t);
  await seedDatabase(dir, async (database) => {
    for (const program of programs) {
      await insertProgram(database, program);
    }
    await insertProgramLeaves(database);
    let timeMs = blockTimeMs;
    const chain = await openChain(database, authorities, { nowMs: () => timeMs });
    for (const [i, transactions] of blocks.entries()) {
      timeMs = i + 1 === lastBlock ? lastBlockTimeMs : blockTimeMs;
      for (const transaction of transactions) {
        await chain.submit(transaction);
      }
      await chain.produceBlock(authorities[0]);
    }
    // The rejection is reported for an hour after the transaction expired, which was long ago.
    const rejection = {
      hash: rejectedHash,
      reason: "There is no storage program at this address.",
      rejectedMs: blockTimeMs,
      expiresMs: 2 ** 52,
    };
    await createMempoolStore(database.mempool).remove({ included: [], rejected: [rejection] });
  });
  await writeKey(join(dir, "identity.key"), testKey(1));
  await writeFile(join(dir, "genesis.json"), genesisOf(...authorities));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  return dir;
}

async function startBoth(
  t: Teardown,
  memberDir: string,
  more: Readonly<Record<string, string>> = {},
): Promise<ContractNodes> {
  const ca = more["tls-cert"] === undefined ? {} : { ca: await readFile(more["tls-cert"]) };
  // A node of an open network warns of private programs at a varying time.
  const flags = { followers: "listed", "tlsnotary-enabled": true, "notary-keys": notaryKey, ...more };
  const member = await startTestNode(
    t,
    {
      ...flags,
      genesis: "genesis.json",
      peers: "peers.json",
      "loop-interval": "3600",
      "allow-private-peers": true,
    },
    memberDir,
  );
  const newcomerDir = await temporaryDirectory(t);
  await writeKey(join(newcomerDir, "identity.key"), testKey(2));
  const newcomer = await startTestNode(t, flags, newcomerDir);
  const nodes = {
    member: { node: member, port: member.port, ...ca },
    newcomer: { node: newcomer, port: newcomer.port, ...ca },
  };
  await makeReady(nodes.member);
  return nodes;
}

async function makeReady(member: ContractNode): Promise<void> {
  // Another process delivers the blocks of this node.
  await createClient(ControlService, member.node.control).reportSubsystem({
    name: "chain",
    status: SubsystemStatus.READY,
    leaseS: 3600,
  });
  const { number, hash, timestampMs, genesisHash } = await createClient(ChainService, member.node.control).getHead({});
  await createClient(ConsensusService, member.node.control).reportHead({
    head: signedHead(authorities[0], { number, hash, genesisHash, timestampMs: timestampMs + 30_000n }),
  });
  const client = connectTransport(plainTransport(member), member);
  await until(async () => {
    const { text } = await client.ask("/health");
    return (JSON.parse(text) as { main_loop: { iterations_total: number } }).main_loop.iterations_total > 0;
  });
  client.close();
}

/** Returns the HTTP/1.1 transport of a target, whose responses are the reference of all comparisons. */
export function plainTransport({ ca }: Target): TransportName {
  return ca === undefined ? "HTTP/1.1" : "TLS with ALPN http/1.1";
}
