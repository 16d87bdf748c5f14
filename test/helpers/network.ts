/** Networks of real nodes, in this process or in their own, and strangers that speak the peer protocol by themselves. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { DescMethodUnary, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import {
  ChainService,
  ListBlocksRequestSchema,
  ListBlocksResponseSchema,
} from "../../gen/gatehouse/chain/v1/chain_pb.js";
import {
  GetChallengeResponseSchema,
  ExchangeStatusResponseSchema,
  HelloRequestSchema,
  HelloResponseSchema,
  IntroductionSchema,
  type KnownPeerSchema,
  PeerService,
  type StatusSchema,
} from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { createCertificate } from "../../src/certificate.js";
import { sha256 } from "../../src/hash.js";
import { openDatabase } from "../../src/db/connect.js";
import { migrate } from "../../src/db/migrate.js";
import { createPublic, genesisOf, openChain, signTransaction, type TestKey, testKey, writeKey } from "./chain.js";
import { askJson } from "./plain-client.js";
import { startNodeProcess, type RunningCli } from "./run-cli.js";
import { startTestNode, type Teardown, temporaryDirectory, type TestNode } from "./start-node.js";

/** A peer as /peerlist has it. */
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

/** The peers of the node at this port. */
export async function peersOf({ port }: { readonly port: number }): Promise<PeerJson[]> {
  return await askJson<PeerJson[]>(port, "/peerlist");
}

/** The newest block of the node at this port. */
export async function headOf({ port }: { readonly port: number }): Promise<{ number: number; hash: string }> {
  return await askJson(port, "/chain/head");
}

/** How a node of a test network is started. */
export interface NetworkNode {
  /** Its identity. */
  readonly key: TestKey;
  /** Text of the genesis. */
  readonly genesis: string;
  /** Endpoints that it is told of. */
  readonly seeds?: readonly (string | { readonly url: string; readonly identity: string })[];
  readonly flags?: Readonly<Record<string, string | boolean>>;
  /** Directory of an earlier start. */
  readonly dir?: string;
}

/** Prepares the directory of a node, and gives it with the flags. */
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

/** Where other nodes reach this one. */
export function endpointOf({ ports }: { readonly ports: Readonly<Record<string, number>> }): string {
  return `https://127.0.0.1:${ports["omni"]}`;
}

/** Starts a node of a network in this process. */
export async function startMemberOf(t: Teardown, node: NetworkNode): Promise<TestNode> {
  const { home, all } = await prepare(t, node);
  return await startTestNode(t, all, home);
}

/** A node of a network as a process of its own. */
export interface NodeProcess extends RunningCli {
  readonly dir: string;
  readonly ports: Readonly<Record<string, number>>;
}

/** Starts a node of a network as a process of its own. */
export async function startProcessOf(t: Teardown, node: NetworkNode): Promise<NodeProcess> {
  const { home, all } = await prepare(t, node);
  const flags = Object.entries(all).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
  const running = await startNodeProcess(t, home, flags);
  return { ...running, dir: home, ports: running.ready.ports };
}

/** A genesis, its hash, and who may make blocks. */
export function networkOf(...authorities: readonly TestKey[]) {
  const genesis = genesisOf(...authorities);
  return { genesis, genesisHash: sha256(genesis) };
}

/** Fills a node's database with blocks that this authority makes, one transaction in each. */
export async function seedBlocks(file: string, authority: TestKey, count: number): Promise<Block[]> {
  const database = await openDatabase(`sqlite:${file}`);
  await migrate(database);
  const chain = await openChain(database, [authority]);
  const blocks: Block[] = [];
  for (let nonce = 1; nonce <= count; nonce++) {
    await chain.submit(signTransaction(testKey(99), nonce, createPublic(`program ${nonce}`, `{"n":${nonce}}`)));
    blocks.push((await chain.seal(authority))!.signed);
  }
  await database.close();
  return blocks;
}

/** Blocks of a chain that this authority makes. */
export async function makeBlocks(t: Teardown, authority: TestKey, count: number): Promise<Block[]> {
  return await seedBlocks(join(await temporaryDirectory(t), "blocks.sqlite"), authority, count);
}

/** The status of a node whose newest block this is. */
export function statusAt(block: Block | undefined, accepting = true): MessageInitShape<typeof StatusSchema> {
  return { headHeader: block?.header, headSignature: block?.signature, accepting };
}

/** Speaks to the internal port of a node, as somebody who holds this key; without one over cleartext. */
export interface Stranger {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
  /** Says Hello with what is given; the rest is as it should be. */
  hello(said: HelloSaid): Promise<MessageShape<typeof HelloResponseSchema>>;
}

/** What a Hello says. */
export interface HelloSaid {
  readonly endpoint: string;
  readonly genesisHash: string;
  /** Who signs; the stranger itself when left out. */
  readonly signer?: TestKey;
  readonly identity?: string;
  readonly challenge?: Uint8Array;
  readonly connectionString?: string;
  readonly status?: MessageInitShape<typeof StatusSchema>;
}

const signedPrefix = Buffer.from("gatehouse introduction v1\0", "latin1");

/** An introduction, made of protobuf-es and node:crypto alone. */
export function signIntroduction(signer: TestKey, said: MessageInitShape<typeof IntroductionSchema>) {
  const introduction = toBinary(IntroductionSchema, create(IntroductionSchema, said));
  return { introduction, signature: signer.sign(Buffer.concat([signedPrefix, introduction])) };
}

/** Connects when first used. */
export function connectStranger(t: Teardown, port: number, key: TestKey): Stranger {
  const { cert, key: privateKey } = createCertificate(key.privateKey);
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createSsl(null, Buffer.from(privateKey), Buffer.from(cert), { rejectUnauthorized: false }),
  );
  t.teardown(() => client.close());
  const call: Stranger["call"] = (method, request) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: object) => Buffer.from(toBinary(method.input, message as never)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        new Metadata(),
        { deadline: Date.now() + 20_000 },
        (error, response) => (response === undefined ? reject(error!) : resolve(response)),
      );
    });
  return {
    call,
    async hello({
      endpoint,
      genesisHash,
      signer = key,
      identity = key.publicKey,
      challenge,
      connectionString,
      status,
    }) {
      const { challenge: fresh } = await call(PeerService.method.getChallenge, {});
      return await call(PeerService.method.hello, {
        challenge: randomBytes(32),
        introduction: signIntroduction(signer, {
          challenge: challenge ?? fresh,
          identity,
          genesisHash,
          connectionString: connectionString ?? "http://127.0.0.1:1",
          endpoint,
          status: status ?? {},
          version: "0",
        }),
      });
    },
  };
}

/** A peer that answers as it is told, and not as it should. */
export interface OddPeer {
  readonly key: TestKey;
  readonly genesisHash: string;
  /** How far it says that it is; a function is asked anew each time. */
  readonly status?: () => MessageInitShape<typeof StatusSchema>;
  /** Streams blocks for a call; ends the stream when it returns. */
  readonly blocks?: (fromNumber: bigint, send: (block: Block | undefined) => Promise<void>) => Promise<void>;
  readonly peers?: readonly MessageInitShape<typeof KnownPeerSchema>[];
  /** Changes its introduction. */
  readonly introduce?: (
    said: MessageInitShape<typeof IntroductionSchema>,
  ) => MessageInitShape<typeof IntroductionSchema>;
}

/** Serves an odd peer over TLS and gives its endpoint. */
export async function startOddPeer(t: Teardown, odd: OddPeer): Promise<{ readonly endpoint: string; calls: number }> {
  const { cert, key } = createCertificate(odd.key.privateKey);
  const server = new Server();
  t.teardown(() => server.forceShutdown());
  const state = { endpoint: "", calls: 0 };
  const pass = (bytes: Buffer): Buffer => bytes;
  const definition = (path: string, responseStream: boolean) => ({
    path,
    requestStream: false,
    responseStream,
    requestSerialize: pass,
    requestDeserialize: pass,
    responseSerialize: pass,
    responseDeserialize: pass,
  });
  const status = () => odd.status?.() ?? {};
  const peers = [...(odd.peers ?? [])];
  server.addService(
    {
      challenge: definition("/gatehouse.peer.v1.PeerService/GetChallenge", false),
      hello: definition("/gatehouse.peer.v1.PeerService/Hello", false),
      status: definition("/gatehouse.peer.v1.PeerService/ExchangeStatus", false),
      blocks: definition(`/${ChainService.typeName}/ListBlocks`, true),
    },
    {
      challenge(_: unknown, reply: (error: null, bytes: Uint8Array) => void) {
        const answer = { challenge: randomBytes(32), genesisHash: odd.genesisHash };
        reply(null, Buffer.from(toBinary(GetChallengeResponseSchema, create(GetChallengeResponseSchema, answer))));
      },
      hello(call: { request: Buffer }, reply: (error: null, bytes: Uint8Array) => void) {
        const { challenge } = fromBinary(HelloRequestSchema, call.request);
        const said = {
          challenge,
          identity: odd.key.publicKey,
          genesisHash: odd.genesisHash,
          connectionString: "http://127.0.0.1:1",
          endpoint: state.endpoint,
          status: status(),
          version: "0",
        };
        const introduction = signIntroduction(odd.key, odd.introduce?.(said) ?? said);
        const answer = create(HelloResponseSchema, { introduction, peers });
        reply(null, Buffer.from(toBinary(HelloResponseSchema, answer)));
      },
      status(_: unknown, reply: (error: null, bytes: Uint8Array) => void) {
        const answer = create(ExchangeStatusResponseSchema, { status: status(), peers });
        reply(null, Buffer.from(toBinary(ExchangeStatusResponseSchema, answer)));
      },
      blocks(call: ServerWritableStream<Buffer, Buffer>) {
        state.calls++;
        const { fromNumber } = fromBinary(ListBlocksRequestSchema, call.request);
        const send = async (block: Block | undefined): Promise<void> => {
          const bytes = toBinary(ListBlocksResponseSchema, create(ListBlocksResponseSchema, { block }));
          if (!call.write(Buffer.from(bytes)) && !call.cancelled) {
            await new Promise<void>((resolve) => {
              const go = (): void => {
                call.off("drain", go).off("cancelled", go);
                resolve();
              };
              call.on("drain", go).on("cancelled", go);
            });
          }
          if (call.cancelled) {
            throw new Error("The caller has gone.");
          }
        };
        void Promise.resolve(odd.blocks?.(fromNumber, send)).then(
          () => call.end(),
          () => call.end(),
        );
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(
      "127.0.0.1:0",
      ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }], false),
      (error, bound) => (error === null ? resolve(bound) : reject(error)),
    );
  });
  state.endpoint = `https://127.0.0.1:${port}`;
  return state;
}
