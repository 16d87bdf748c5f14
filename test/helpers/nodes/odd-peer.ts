/** A fake peer that implements the protocol with grpc-js and protobuf-es, without code of the node. */
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

/** The key of a fake peer. */
export interface OddKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
  sign(bytes: Uint8Array): Uint8Array;
}

const signedPrefix = Buffer.from("gatehouse handshake v1\0", "latin1");

/** Signs a node info, with protobuf-es and node:crypto only. */
export function signNodeInfo(signer: OddKey, fields: MessageInitShape<typeof NodeInfoSchema>) {
  const nodeInfo = toBinary(NodeInfoSchema, create(NodeInfoSchema, fields));
  return { nodeInfo, signature: signer.sign(Buffer.concat([signedPrefix, nodeInfo])) };
}

/** The behavior of a fake peer. */
export interface OddPeer {
  readonly key: OddKey;
  readonly genesisHash: string;
  /** Returns the status for each request. */
  readonly status?: () => MessageInitShape<typeof StatusSchema>;
  /** Streams blocks for a call. The stream ends when it returns. */
  readonly blocks?: (fromNumber: bigint, send: (block: Block | undefined) => Promise<void>) => Promise<void>;
  readonly peers?: readonly MessageInitShape<typeof KnownPeerSchema>[];
  /** Returns the statuses of relayed transactions; by default all are pending. */
  readonly relayed?: (request: RelayTransactionsRequest) => readonly TransactionStatus[];
  /** Changes the node info in handshakes. */
  readonly changeNodeInfo?: (
    nodeInfo: MessageInitShape<typeof NodeInfoSchema>,
  ) => MessageInitShape<typeof NodeInfoSchema>;
}

/** Serves a fake peer over TLS. Returns its endpoint, and the number of ListBlocks calls. */
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
        const response = { challenge: randomBytes(32), genesisHash: odd.genesisHash };
        reply(null, Buffer.from(toBinary(GetChallengeResponseSchema, create(GetChallengeResponseSchema, response))));
      },
      handshake(call: { request: Buffer }, reply: (error: null, bytes: Uint8Array) => void) {
        const { challenge } = fromBinary(HandshakeRequestSchema, call.request);
        const fields = {
          challenge,
          identity: odd.key.publicKey,
          genesisHash: odd.genesisHash,
          connectionString: "http://127.0.0.1:1",
          endpoint: state.endpoint,
          status: status(),
          version: "0",
        };
        const nodeInfo = signNodeInfo(odd.key, odd.changeNodeInfo?.(fields) ?? fields);
        const response = create(HandshakeResponseSchema, { nodeInfo, peers });
        reply(null, Buffer.from(toBinary(HandshakeResponseSchema, response)));
      },
      status(_: unknown, reply: (error: null, bytes: Uint8Array) => void) {
        const response = create(ExchangeStatusResponseSchema, { status: status(), peers });
        reply(null, Buffer.from(toBinary(ExchangeStatusResponseSchema, response)));
      },
      relay(call: { request: Buffer }, reply: (error: null, bytes: Uint8Array) => void) {
        const request = fromBinary(RelayTransactionsRequestSchema, call.request);
        const statuses = odd.relayed?.(request) ?? request.transactions.map(() => TransactionStatus.PENDING);
        const response = { outcomes: statuses.map((outcome) => ({ status: outcome })) };
        reply(
          null,
          Buffer.from(toBinary(RelayTransactionsResponseSchema, create(RelayTransactionsResponseSchema, response))),
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

/** A client of the internal port of a node, with its own key. */
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
  /** Sends a handshake with these values; the rest is valid. */
  handshake(fields: HandshakeFields): Promise<MessageShape<typeof HandshakeResponseSchema>>;
}

/** The values of a handshake that a test sets. */
export interface HandshakeFields {
  readonly endpoint: string;
  readonly genesisHash: string;
  /** The key that signs; by default that of the stranger. */
  readonly signer?: OddKey;
  readonly identity?: string;
  readonly challenge?: Uint8Array;
  readonly connectionString?: string;
  readonly status?: MessageInitShape<typeof StatusSchema>;
}

/** Creates a client that connects on its first call. */
export function connectStranger(t: { teardown(close: () => unknown): void }, port: number, key: OddKey): Stranger {
  const { cert, key: privateKey } = createCertificate(key.privateKey);
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createSsl(null, Buffer.from(privateKey), Buffer.from(cert), { rejectUnauthorized: false }),
    // TLS requires a host name, not an address.
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
