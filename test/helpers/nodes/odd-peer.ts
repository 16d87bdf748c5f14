/** A peer that speaks the protocol by itself, made of grpc-js and protobuf-es. */
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { type KeyObject, randomBytes } from "node:crypto";
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import {
  ChainService,
  ListBlocksRequestSchema,
  ListBlocksResponseSchema,
  TransactionStatus,
} from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import {
  ExchangeStatusResponseSchema,
  GetChallengeResponseSchema,
  HandshakeRequestSchema,
  HandshakeResponseSchema,
  NodeInfoSchema,
  type KnownPeerSchema,
  PeerService,
  type RelayTransactionsRequest,
  RelayTransactionsRequestSchema,
  RelayTransactionsResponseSchema,
  type StatusSchema,
} from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { callStream, callUnary } from "../wire/grpc-client.js";

/** A key that such a peer has. */
export interface OddKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
  sign(bytes: Uint8Array): Uint8Array;
}

const signedPrefix = Buffer.from("gatehouse handshake v1\0", "latin1");

/** A signed node info, made of protobuf-es and node:crypto alone. */
export function signNodeInfo(signer: OddKey, said: MessageInitShape<typeof NodeInfoSchema>) {
  const nodeInfo = toBinary(NodeInfoSchema, create(NodeInfoSchema, said));
  return { nodeInfo, signature: signer.sign(Buffer.concat([signedPrefix, nodeInfo])) };
}

/** A peer that answers as it is told, and not as it should. */
export interface OddPeer {
  readonly key: OddKey;
  readonly genesisHash: string;
  /** How far it says that it is; a function is asked anew each time. */
  readonly status?: () => MessageInitShape<typeof StatusSchema>;
  /** Streams blocks for a call; ends the stream when it returns. */
  readonly blocks?: (fromNumber: bigint, send: (block: Block | undefined) => Promise<void>) => Promise<void>;
  readonly peers?: readonly MessageInitShape<typeof KnownPeerSchema>[];
  /** Says what becomes of transactions that are relayed to it; of each, that it is pending, where this is left out. */
  readonly relayed?: (request: RelayTransactionsRequest) => readonly TransactionStatus[];
  /** Changes its node info. */
  readonly changeNodeInfo?: (said: MessageInitShape<typeof NodeInfoSchema>) => MessageInitShape<typeof NodeInfoSchema>;
}

/** Serves an odd peer over TLS and gives its endpoint. */
export async function startOddPeer(
  t: { teardown(close: () => unknown): void },
  odd: OddPeer,
): Promise<{ readonly endpoint: string; calls: number }> {
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
      handshake: definition("/gatehouse.peer.v1.PeerService/Handshake", false),
      status: definition("/gatehouse.peer.v1.PeerService/ExchangeStatus", false),
      relay: definition("/gatehouse.peer.v1.PeerService/RelayTransactions", false),
      blocks: definition(`/${ChainService.typeName}/ListBlocks`, true),
    },
    {
      challenge(_: unknown, reply: (error: null, bytes: Uint8Array) => void) {
        const answer = { challenge: randomBytes(32), genesisHash: odd.genesisHash };
        reply(null, Buffer.from(toBinary(GetChallengeResponseSchema, create(GetChallengeResponseSchema, answer))));
      },
      handshake(call: { request: Buffer }, reply: (error: null, bytes: Uint8Array) => void) {
        const { challenge } = fromBinary(HandshakeRequestSchema, call.request);
        const said = {
          challenge,
          identity: odd.key.publicKey,
          genesisHash: odd.genesisHash,
          connectionString: "http://127.0.0.1:1",
          endpoint: state.endpoint,
          status: status(),
          version: "0",
        };
        const nodeInfo = signNodeInfo(odd.key, odd.changeNodeInfo?.(said) ?? said);
        const answer = create(HandshakeResponseSchema, { nodeInfo, peers });
        reply(null, Buffer.from(toBinary(HandshakeResponseSchema, answer)));
      },
      status(_: unknown, reply: (error: null, bytes: Uint8Array) => void) {
        const answer = create(ExchangeStatusResponseSchema, { status: status(), peers });
        reply(null, Buffer.from(toBinary(ExchangeStatusResponseSchema, answer)));
      },
      relay(call: { request: Buffer }, reply: (error: null, bytes: Uint8Array) => void) {
        const request = fromBinary(RelayTransactionsRequestSchema, call.request);
        const statuses = odd.relayed?.(request) ?? request.transactions.map(() => TransactionStatus.PENDING);
        const answer = { outcomes: statuses.map((outcome) => ({ status: outcome })) };
        reply(
          null,
          Buffer.from(toBinary(RelayTransactionsResponseSchema, create(RelayTransactionsResponseSchema, answer))),
        );
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
            throw new Error("The client disconnected.");
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

/** Speaks to the internal port of a node, as somebody who holds this key; without one over cleartext. */
export interface Stranger {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
  /** Shakes hands with what is given; the rest is as it should be. */
  handshake(given: HandshakeGiven): Promise<MessageShape<typeof HandshakeResponseSchema>>;
}

/** What the caller gives in a handshake. */
export interface HandshakeGiven {
  readonly endpoint: string;
  readonly genesisHash: string;
  /** Who signs; the stranger itself when left out. */
  readonly signer?: OddKey;
  readonly identity?: string;
  readonly challenge?: Uint8Array;
  readonly connectionString?: string;
  readonly status?: MessageInitShape<typeof StatusSchema>;
}

/** Connects when first used. */
export function connectStranger(t: { teardown(close: () => unknown): void }, port: number, key: OddKey): Stranger {
  const { cert, key: privateKey } = createCertificate(key.privateKey);
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createSsl(null, Buffer.from(privateKey), Buffer.from(cert), { rejectUnauthorized: false }),
    // An address is no name of a server in TLS.
    { "grpc.ssl_target_name_override": "localhost" },
  );
  t.teardown(() => client.close());
  const call: Stranger["call"] = (method, request) => callUnary(client, method, request);
  return {
    call,
    stream: (method, request, signal) => callStream(client, method, request, signal),
    async handshake({
      endpoint,
      genesisHash,
      signer = key,
      identity = key.publicKey,
      challenge,
      connectionString,
      status,
    }) {
      const { challenge: fresh } = await call(PeerService.method.getChallenge, {});
      return await call(PeerService.method.handshake, {
        challenge: randomBytes(32),
        nodeInfo: signNodeInfo(signer, {
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
