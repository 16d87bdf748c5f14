/** A fake peer that implements the protocol with grpc-js and protobuf-es, without code of the node. */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials, Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { randomBytes } from "node:crypto";
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import {
  ChainService,
  ListBlocksRequestSchema,
  ListBlocksResponseSchema,
  TransactionStatus,
} from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import {
  NodeInfoSchema,
  type KnownPeerSchema,
  PeerService,
  type RelayTransactionsRequest,
  type StatusSchema,
} from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import type { TestKey } from "../chain/keys.js";
import { callsOver } from "../wire/grpc-client.js";
import type { Teardown } from "./teardown.js";

type NodeInfo = MessageInitShape<typeof NodeInfoSchema>;
type Status = MessageInitShape<typeof StatusSchema>;

const signedPrefix = Buffer.from("gatehouse handshake v1\0", "latin1");

/** Signs a node info, with protobuf-es and node:crypto only. */
export function signNodeInfo(signer: TestKey, fields: NodeInfo) {
  const nodeInfo = toBinary(NodeInfoSchema, create(NodeInfoSchema, fields));
  return { nodeInfo, signature: signer.sign(Buffer.concat([signedPrefix, nodeInfo])) };
}

/** The behavior of a fake peer. */
export interface OddPeer {
  readonly key: TestKey;
  readonly genesisHash: string;
  /** Returns the status for each request. */
  readonly status?: () => Status;
  /** Streams blocks for a call. The stream ends when it returns, or with the ServiceError that it throws. */
  readonly blocks?: (fromNumber: bigint, send: (block: Block | undefined) => Promise<void>) => Promise<void>;
  readonly peers?: readonly MessageInitShape<typeof KnownPeerSchema>[];
  /** True if the peer has verified its caller before. Others are asked for a handshake again. */
  readonly knowsCaller?: boolean;
  /** Returns the statuses of relayed transactions; by default all are pending. */
  readonly relayed?: (request: RelayTransactionsRequest) => readonly TransactionStatus[];
  /** Changes the node info in handshakes. */
  readonly changeNodeInfo?: (nodeInfo: NodeInfo) => NodeInfo;
}

const asIs = (bytes: Buffer): Buffer => bytes;

/** Defines a method whose messages stay bytes. */
function definitionOf({ parent, name, methodKind }: DescMethod) {
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: false,
    responseStream: methodKind === "server_streaming",
    ...{ requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
  };
}

/** Serves a fake peer over TLS. Returns its endpoint, and the number of ListBlocks calls. */
export async function startOddPeer(t: Teardown, odd: OddPeer): Promise<{ readonly endpoint: string; calls: number }> {
  const { cert, key } = createCertificate(odd.key.privateKey);
  const server = new Server();
  t.teardown(() => server.forceShutdown());
  const state = { endpoint: "", calls: 0 };
  const status = () => odd.status?.() ?? {};
  const peers = [...(odd.peers ?? [])];
  const answer = <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    respond: (request: MessageShape<I>) => MessageInitShape<O>,
  ): void => {
    const call = ({ request }: { request: Buffer }, reply: (error: null, bytes: Buffer) => void): void => {
      const response = create(method.output, respond(fromBinary(method.input, request)));
      reply(null, Buffer.from(toBinary(method.output, response)));
    };
    server.addService({ call: definitionOf(method) }, { call });
  };
  answer(PeerService.method.getChallenge, () => ({ challenge: randomBytes(32), genesisHash: odd.genesisHash }));
  answer(PeerService.method.handshake, ({ challenge }) => {
    const fields = {
      challenge,
      identity: odd.key.publicKey,
      genesisHash: odd.genesisHash,
      connectionString: "http://127.0.0.1:1",
      endpoint: state.endpoint,
      status: status(),
      version: "0",
    };
    return { nodeInfo: signNodeInfo(odd.key, odd.changeNodeInfo?.(fields) ?? fields), peers };
  });
  answer(PeerService.method.exchangeStatus, () => ({ status: status(), peers, knowsCaller: odd.knowsCaller ?? false }));
  answer(PeerService.method.relayTransactions, (request) => {
    const statuses = odd.relayed?.(request) ?? request.transactions.map(() => TransactionStatus.PENDING);
    return { outcomes: statuses.map((outcome) => ({ status: outcome })) };
  });
  const blocks = (call: ServerWritableStream<Buffer, Buffer>): void => {
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
    const end = (): void => void call.end();
    void Promise.resolve(odd.blocks?.(fromNumber, send)).then(end, (error: unknown) => {
      if (error instanceof Error && "metadata" in error) {
        call.emit("error", error);
      } else {
        end();
      }
    });
  };
  server.addService({ blocks: definitionOf(ChainService.method.listBlocks) }, { blocks });
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createSsl(null, [pair], false), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  state.endpoint = `https://127.0.0.1:${port}`;
  return state;
}

/** The values of a handshake that a test sets. */
interface HandshakeFields extends Pick<NodeInfo, "identity" | "challenge" | "connectionString" | "status"> {
  readonly endpoint: string;
  readonly genesisHash: string;
  /** The key that signs; by default that of the stranger. */
  readonly signer?: TestKey;
}

/** Creates a client of the internal port of a node, with its own key, that connects on its first call. */
export function connectStranger(t: Teardown, port: number, key: TestKey) {
  const { cert, key: privateKey } = createCertificate(key.privateKey);
  const { close, ...calls } = callsOver(
    new Client(
      `127.0.0.1:${port}`,
      credentials.createSsl(null, Buffer.from(privateKey), Buffer.from(cert), { rejectUnauthorized: false }),
      // TLS requires a host name, not an address.
      { "grpc.ssl_target_name_override": "localhost" },
    ),
  );
  t.teardown(close);
  return {
    ...calls,
    /** Sends a handshake with these values; the rest is valid. */
    async handshake({ signer = key, ...fields }: HandshakeFields) {
      const { challenge } = await calls.call(PeerService.method.getChallenge, {});
      const valid = { challenge, identity: key.publicKey, connectionString: "http://127.0.0.1:1", version: "0" };
      return await calls.call(PeerService.method.handshake, {
        challenge: randomBytes(32),
        nodeInfo: signNodeInfo(signer, { ...valid, status: {}, ...fields }),
      });
    },
  };
}
