/** Networks of real nodes, in this process or in child processes. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { StatusSchema } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { createPublic, signTransaction } from "../chain/transactions.js";
import { openChain } from "../chain/chain.js";
import { genesisOf, type TestKey, testKey, writeKey } from "../chain/keys.js";
import { askJson } from "../wire/plain-client.js";
import { noRecover, type RunningCli, startNodeProcess } from "./run-cli.js";
import type { StartOptions } from "../../../src/node/node.js";
import { startTestNode, type TestNode } from "./start-node.js";
import { type Teardown, temporaryDirectory } from "./teardown.js";
import { until } from "./until.js";

/** A peer in the response of /peerlist. */
export interface PeerJson {
  readonly connection: { readonly string: string };
  readonly identity: string;
  readonly verification: {
    readonly status: boolean;
    readonly message: string | null;
    readonly timestamp: number | null;
  };
  readonly sync: { readonly status: boolean; readonly block: number | null; readonly block_hash: string | null };
  readonly status: { readonly online: boolean; readonly timestamp: number | null; readonly ready: boolean };
}

/** Requests the peers of a node. */
export async function peersOf({ port }: { readonly port: number }): Promise<PeerJson[]> {
  return await askJson<PeerJson[]>(port, "/peerlist");
}

/** Requests the latest block of a node. */
export async function headOf({ port }: { readonly port: number }): Promise<{ number: number; hash: string }> {
  return await askJson(port, "/chain/head");
}

/** The members of `GET /health` that tests of networks read. */
export interface HealthJson {
  readonly status: string;
  readonly accepting: boolean;
  readonly mempool_size: number;
  readonly main_loop: { readonly iterations_total: number };
  readonly subsystems: Readonly<
    Record<
      string,
      {
        readonly status: string;
        readonly lastError: { readonly message: string; readonly source: string } | null;
        readonly extra?: {
          readonly reason?: string;
          readonly taskErrors?: number;
          readonly sync?: Readonly<Record<string, unknown>>;
        };
      }
    >
  >;
}

/** A node in any process. */
export interface HasPort {
  readonly port: number;
}

/** Requests the health of a node. */
export const healthOf = ({ port }: HasPort): Promise<HealthJson> => askJson<HealthJson>(port, "/health");

/** Returns the error of a node's chain; empty if the chain has not failed. */
export async function chainFailure(node: HasPort): Promise<string> {
  const { status, lastError } = (await healthOf(node)).subsystems["chain"]!;
  return status === "failed" ? lastError!.message : "";
}

/** Waits until the node has polled its peers this often. */
export async function untilPolled(node: HasPort, times = 3): Promise<void> {
  const ticks = async (): Promise<number> => (await healthOf(node)).main_loop.iterations_total;
  const before = await ticks();
  await until(async () => (await ticks()) >= before + times);
}

/** Waits until the message about one of the node's peers matches. */
export async function untilPeerIs(node: HasPort, message: RegExp, index = 0): Promise<void> {
  await until(async () => message.test((await peersOf(node))[index]?.verification.message ?? ""), String(message));
}

/** Waits until this many peers of the node are ready. */
export async function untilReady(node: HasPort, peers = 1): Promise<void> {
  await until(async () => (await peersOf(node)).filter(({ status }) => status.ready).length >= peers);
}

/** Waits until the node has the block with this number. */
export async function untilAt(node: HasPort, number: number): Promise<void> {
  await until(async () => (await headOf(node).catch(() => undefined))?.number === number, `block ${number}`);
}

/** The settings of a node in a test network. */
export interface NetworkNode {
  /** Its identity. */
  readonly key: TestKey;
  /** Text of the genesis. */
  readonly genesis: string;
  /** Endpoints in its peers file. */
  readonly seeds?: readonly (string | { readonly url: string; readonly identity: string })[];
  readonly flags?: Readonly<Record<string, string | boolean>>;
  /** Directory of an earlier start. */
  readonly dir?: string;
  /** Options of a node in this process. */
  readonly options?: Partial<StartOptions>;
  /** For a child process: a command that runs the command after it. */
  readonly wrapper?: readonly string[];
}

/** Prepares the directory of a node. Returns it with the flags. */
async function prepare(t: Teardown, { key, genesis, seeds, flags, dir }: NetworkNode) {
  const home = dir ?? (await temporaryDirectory(t));
  await mkdir(home, { recursive: true });
  await writeFile(join(home, "genesis.json"), genesis);
  await writeKey(join(home, "identity.key"), key);
  const peers = join(home, "peers.json");
  await writeFile(
    peers,
    JSON.stringify((seeds ?? []).map((seed) => (typeof seed === "string" ? { url: seed } : seed))),
  );
  const all = {
    genesis: join(home, "genesis.json"),
    peers,
    "loop-interval": "0.2",
    "allow-private-peers": true,
    ...flags,
  };
  return { home, all };
}

/** Returns the endpoint of a node for other nodes. */
export function endpointOf({ ports }: { readonly ports: Readonly<Record<string, number>> }): string {
  return `https://127.0.0.1:${ports["omni"]}`;
}

/** Starts a node of a network in this process. */
export async function startMemberOf(t: Teardown, node: NetworkNode): Promise<TestNode> {
  const { home, all } = await prepare(t, node);
  return await startTestNode(t, all, home, node.options);
}

/** A node of a network in a child process. */
export interface NodeProcess extends RunningCli {
  readonly dir: string;
  readonly ports: Readonly<Record<string, number>>;
}

/** Starts a node of a network in a child process. */
export async function startProcessOf(t: Teardown, node: NetworkNode): Promise<NodeProcess> {
  const { home, all } = await prepare(t, node);
  const { recover, ...others } = all as typeof all & { readonly recover?: boolean };
  const flags = Object.entries(others).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
  if (recover === false) {
    flags.push(noRecover);
  }
  const running = await startNodeProcess(t, home, flags, node.wrapper);
  return { ...running, dir: home, ports: running.ready.ports };
}

/** Returns a genesis with these authorities, and its hash. */
export function networkOf(...authorities: readonly TestKey[]) {
  const genesis = genesisOf(...authorities);
  return { genesis, genesisHash: sha256(genesis) };
}

/** Fills a database with blocks of this authority, each with one transaction. */
export async function seedBlocks(file: string, authority: TestKey, count: number): Promise<Block[]> {
  const database = await openDatabase(`sqlite:${file}`);
  await migrate(database);
  const chain = await openChain(database, [authority]);
  const { genesisHash: network } = networkOf(authority);
  const blocks: Block[] = [];
  for (let nonce = 1; nonce <= count; nonce++) {
    await chain.submit(
      signTransaction(testKey(99), nonce, createPublic(`program ${nonce}`, `{"n":${nonce}}`), { network }),
    );
    blocks.push((await chain.produceBlock(authority)).block!.signed);
  }
  await database.close();
  return blocks;
}

/** Creates blocks of this authority, each with one transaction. */
export async function makeBlocks(t: Teardown, authority: TestKey, count: number): Promise<Block[]> {
  return await seedBlocks(join(await temporaryDirectory(t), "blocks.sqlite"), authority, count);
}

/** Returns the evidence of a fork: two blocks with one number. */
export const evidenceOf = (one: Block, other: Block) => ({
  ...{ header: one.header, signature: one.signature },
  ...{ otherHeader: other.header, otherSignature: other.signature },
});

/** Returns the blocks of a fake peer that sends these from the requested number on. */
export const sendAll =
  (blocks: readonly Block[]) =>
  async (from: bigint, send: (block: Block | undefined) => Promise<void>): Promise<void> => {
    for (const block of blocks.slice(Number(from) - 1)) {
      await send(block);
    }
  };

/** Returns the status of a node with this latest block. */
export function statusAt(block: Block | undefined, accepting = true): MessageInitShape<typeof StatusSchema> {
  return { headHeader: block?.header, headSignature: block?.signature, accepting };
}
