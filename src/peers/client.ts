/** Asks another node over gRPC what it says of itself. The one place where the node is a client. */
import { Client, credentials, Metadata, status as GrpcStatus, type ServiceError } from "@grpc/grpc-js";
import type { DescMethodUnary, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { binaryDecoder } from "../rpc/binary-decoder.js";
import { binaryEncoder } from "../rpc/binary-encoder.js";
import type { PeerAnswer } from "./peer-book.js";

/** Asks peers. Connections are kept between calls. */
export interface PeerClient {
  /** What the peer at this connection string says of itself. Rejects when it does not answer within the deadline. */
  ask(url: string, deadlineMs: number): Promise<PeerAnswer>;
  close(): void;
}

/** Builds a client. */
export function createPeerClient(): PeerClient {
  const clients = new Map<string, Client>();

  function clientOf(url: string): Client {
    let client = clients.get(url);
    if (client === undefined) {
      const { protocol, host } = new URL(url);
      client = new Client(host, protocol === "https:" ? credentials.createSsl() : credentials.createInsecure(), {
        "grpc.initial_reconnect_backoff_ms": 200,
        "grpc.max_reconnect_backoff_ms": 5_000,
        "grpc.enable_channelz": 0,
      });
      clients.set(url, client);
    }
    return client;
  }

  return {
    async ask(url, deadlineMs) {
      const client = clientOf(url);
      const deadline = Date.now() + deadlineMs;
      const [info, health, head] = await Promise.all([
        call(client, InfoService.method.getInfo, deadline),
        call(client, HealthService.method.getHealth, deadline),
        call(client, ChainService.method.getHead, deadline).catch(undefinedWhenUnavailable),
      ]);
      return { identity: info.identity, accepting: health.snapshot?.accepting ?? false, head };
    },
    close() {
      clients.forEach((client) => client.close());
      clients.clear();
    },
  };
}

/** A peer that has no chain yet says so with UNAVAILABLE; that it answers at all is known from the other calls. */
function undefinedWhenUnavailable(error: unknown): undefined {
  if ((error as Partial<ServiceError>).code !== GrpcStatus.UNAVAILABLE) {
    throw error;
  }
}

function call<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  deadline: number,
): Promise<MessageShape<O>> {
  const decode = binaryDecoder(method.output);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      `/${method.parent.typeName}/${method.name}`,
      binaryEncoder(method.input),
      (bytes) => decode(bytes) as MessageShape<O>,
      {},
      new Metadata(),
      { deadline },
      (error, response) => {
        if (error !== null || response === undefined) {
          reject(error ?? new Error("no response"));
        } else {
          resolve(response);
        }
      },
    );
  });
}
