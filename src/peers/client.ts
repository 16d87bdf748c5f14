/**
 * Calls other nodes over gRPC: the one place where the node is a client. Over TLS the other end proves which key it
 * holds, and shows a certificate that nobody else has signed.
 */
import {
  ChannelCredentials,
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import type { DescMessage, DescMethod, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { fromBinary } from "@bufbuild/protobuf";
import { isIPv6, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { StatusSchema } from "../../gen/google/rpc/status_pb.js";
import { identityOfCertificate, type TlsCredentials } from "../base/certificate.js";
import { binaryDecoder } from "../rpc/codec/binary-decoder.js";
import { binaryEncoder } from "../rpc/codec/binary-encoder.js";
import type { Address } from "./endpoint.js";

/** What went wrong with a call. */
export class PeerCallError extends Error {
  override readonly name = "PeerCallError";

  constructor(
    message: string,
    /** The peer answered, with a failure of its own; otherwise nobody has. */
    readonly isAnswer: boolean,
  ) {
    super(message);
  }
}

/** Calls peers. Connections are kept between calls. */
export interface PeerClient {
  /**
   * Calls a peer.
   *
   * @throws PeerCallError
   */
  call<I extends DescMessage, O extends DescMessage>(
    endpoint: string,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
  /**
   * A peer's blocks from a number on, until the signal is aborted.
   *
   * @throws PeerCallError
   */
  blocks(endpoint: string, fromNumber: bigint, signal: AbortSignal): AsyncGenerator<Block | undefined, void>;
  /** The identity that the peer proved on the connection in use; undefined where there is none, or no TLS. */
  identityOf(endpoint: string): string | undefined;
  /** From now on, only who proves this identity is the peer. */
  expect(endpoint: string, identity: string): void;
  /** Ends the connection; the next call opens another one. */
  drop(endpoint: string): void;
  close(): void;
}

/** What the client needs. */
export interface PeerClientParts {
  /** Undefined for a network without TLS. */
  readonly tls: TlsCredentials | undefined;
  /** Finds the address to call, or rejects where it must not be called. */
  readonly resolve: (endpoint: string) => Promise<Address>;
  /** How long a call may take. */
  readonly deadlineMs: number;
}

/** Most connections that are kept. */
const maxConnections = 1_024;
/** Most bytes of a message: a block and what comes with it. */
const maxMessageBytes = 8 * 1024 * 1024;

interface Connection {
  readonly client: Client;
  readonly proof: Proof | undefined;
  calls: number;
}

/** Builds a client. */
export function createPeerClient({ tls, resolve, deadlineMs }: PeerClientParts): PeerClient {
  /** The least recently used first. */
  const connections = new Map<string, Promise<Connection>>();

  async function open(endpoint: string): Promise<Connection> {
    const { ip, port } = await resolve(endpoint);
    const proof = tls && new Proof(tls);
    const target = isIPv6(ip) ? `ipv6:[${ip}]:${port}` : `ipv4:${ip}:${port}`;
    const client = new Client(target, proof ?? credentials.createInsecure(), {
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2_000,
      "grpc.max_receive_message_length": maxMessageBytes,
      "grpc.default_authority": new URL(endpoint).host,
      // What was checked is what is called.
      "grpc.enable_http_proxy": 0,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_channelz": 0,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
    });
    return { client, proof, calls: 0 };
  }

  function connectionTo(endpoint: string): Promise<Connection> {
    const known = connections.get(endpoint);
    connections.delete(endpoint);
    const connection = known ?? open(endpoint);
    connections.set(endpoint, connection);
    if (known === undefined) {
      connection.catch(() => connections.delete(endpoint));
      void closeSurplus();
    }
    return connection;
  }

  async function closeSurplus(): Promise<void> {
    for (const [endpoint, opening] of [...connections].slice(0, Math.max(0, connections.size - maxConnections))) {
      const connection = await opening.catch(() => undefined);
      if (connection?.calls === 0 && connections.get(endpoint) === opening) {
        drop(endpoint);
      }
    }
  }

  function drop(endpoint: string): void {
    void connections.get(endpoint)?.then(({ client }) => client.close(), ignore);
    connections.delete(endpoint);
    known.delete(endpoint);
  }

  /** What is known of connections at once. */
  const known = new Map<string, Proof>();

  return {
    async call(endpoint, method, request) {
      const connection = await connectionTo(endpoint);
      noteProof(endpoint, connection);
      connection.calls++;
      try {
        return await callUnary(connection.client, method, request, Date.now() + deadlineMs);
      } finally {
        connection.calls--;
      }
    },

    async *blocks(endpoint, fromNumber, signal) {
      const connection = await connectionTo(endpoint);
      const { input, output } = ChainService.method.listBlocks;
      const encode = binaryEncoder(input);
      const decode = binaryDecoder(output);
      connection.calls++;
      const stream = connection.client.makeServerStreamRequest(
        pathOf(ChainService.method.listBlocks),
        encode,
        (bytes) => decode(bytes) as MessageShape<typeof output>,
        { fromNumber },
        new Metadata(),
      ) as ClientReadableStream<MessageShape<typeof output>>;
      // An error is thrown where the stream is read; one that comes after that has nobody to tell.
      stream.on("error", ignore);
      const cancel = (): void => stream.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      try {
        for await (const { block } of stream) {
          yield block;
        }
      } catch (error) {
        throw explain(error as Partial<ServiceError>);
      } finally {
        connection.calls--;
        signal.removeEventListener("abort", cancel);
        stream.cancel();
      }
    },

    identityOf: (endpoint) => known.get(endpoint)?.identity,
    expect(endpoint, identity) {
      const proof = known.get(endpoint);
      if (proof !== undefined) {
        proof.expected = identity;
      }
    },
    drop,
    close() {
      for (const endpoint of [...connections.keys()]) {
        drop(endpoint);
      }
    },
  };

  function noteProof(endpoint: string, { proof }: Connection): void {
    if (proof !== undefined) {
      known.set(endpoint, proof);
    }
  }
}

const ignore = (): void => undefined;

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/**
 * Calls a unary rpc.
 *
 * @throws PeerCallError
 */
export function callUnary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  deadline: number,
  metadata = new Metadata(),
): Promise<MessageShape<O>> {
  const decode = binaryDecoder(method.output);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      pathOf(method),
      binaryEncoder(method.input),
      (bytes) => decode(bytes) as MessageShape<O>,
      request as object,
      metadata,
      { deadline },
      (error, response) => {
        if (error !== null || response === undefined) {
          reject(explain(error ?? {}));
        } else {
          resolve(response);
        }
      },
    );
  });
}

/** A failure that the peer itself has told of carries details that only an answer has. */
function explain(error: Partial<ServiceError>): PeerCallError {
  const [details] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (Buffer.isBuffer(details)) {
    try {
      return new PeerCallError(fromBinary(StatusSchema, details).message.slice(0, 300), true);
    } catch {
      // Not what a node sends.
    }
  }
  return new PeerCallError((error.details ?? error.message ?? "no answer").slice(0, 300), false);
}

/**
 * Credentials of a channel on which the other end proves its identity. grpc-js checks certificates by who signed them,
 * and tells nobody what was in them; so the handshake is made here, by the hook that its own credentials use.
 */
class Proof extends ChannelCredentials {
  /** What the other end of the present connection proved. */
  identity: string | undefined;
  /** If set, nobody else is accepted. */
  expected: string | undefined;

  constructor(private readonly own: TlsCredentials) {
    super();
  }

  override compose(): ChannelCredentials {
    throw new Error("Nothing is added to the credentials between nodes.");
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(
    ...[, , callCredentials]: Parameters<ChannelCredentials["_createSecureConnector"]>
  ): ReturnType<ChannelCredentials["_createSecureConnector"]> {
    return {
      connect: async (socket) => ({ socket: await this.shakeHands(socket), secure: true }),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () =>
        callCredentials ?? credentials.createFromMetadataGenerator((_, done) => done(null, new Metadata())),
      destroy: ignore,
    };
  }

  private shakeHands(socket: Socket): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const secure = connectTls(
        { ...this.own, socket, rejectUnauthorized: false, minVersion: "TLSv1.3", ALPNProtocols: ["h2"] },
        () => {
          const identity = identityOfCertificate(secure.getPeerCertificate().raw);
          if (identity === undefined || (this.expected !== undefined && this.expected !== identity)) {
            secure.destroy();
            reject(new Error("The peer does not prove the identity that is expected of it."));
            return;
          }
          this.identity = identity;
          resolve(secure);
        },
      );
      secure.on("error", reject);
    });
  }
}
