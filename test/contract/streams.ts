/** Server streams of the contract, whose messages equal responses of unary rpcs. */
import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { BlockHeaderSchema, BlockSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, type GetBlockResponse, type ListBlocksResponse } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventKind, EventService, type WatchResponse } from "../../gen/gatehouse/event/v1/event_pb.js";
import {
  type GetHealthResponse,
  HealthService,
  HealthSnapshotSchema,
  type WatchHealthResponse,
} from "../../gen/gatehouse/health/v1/health_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { exotic, includedHash, owner } from "./data.js";

/** Stream with a unary request for each of its first messages, which returns the same data. */
export interface StreamCase {
  readonly stream: DescMethod;
  readonly request: object;
  readonly unary: DescMethod;
  readonly unaryRequests: readonly object[];
  /** Part of both messages to compare; by default everything. */
  readonly common?: {
    readonly desc: DescMessage;
    ofMessage(message: Message): Message;
    ofResponse(response: Message): Message;
  };
  /** The routes over plain HTTP, if any, and the parts of the bodies to compare. */
  readonly plain?: {
    readonly stream: string;
    readonly unary: string;
    readonly ofMessage: (json: string) => unknown;
    readonly ofResponse: (json: string) => unknown;
    /** Example parameters in the API documents, if any. */
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

const parseJson = (json: string): unknown => JSON.parse(json);

/** All streams. */
export const streams: readonly StreamCase[] = [
  {
    stream: HealthService.method.watchHealth,
    request: {},
    unary: HealthService.method.getHealth,
    unaryRequests: [{}],
    common: {
      desc: HealthSnapshotSchema,
      ofMessage: (message) => (message as WatchHealthResponse).snapshot!,
      ofResponse: (response) => (response as GetHealthResponse).snapshot!,
    },
    plain: { stream: "/health/watch", unary: "/health", ofMessage: parseJson, ofResponse: parseJson },
  },
  {
    stream: ChainService.method.listBlocks,
    request: { fromNumber: 2n },
    unary: ChainService.method.getBlock,
    unaryRequests: [{ number: 2n }, { number: 3n }, { number: 4n }],
    common: {
      desc: BlockSchema,
      ofMessage: (message) => (message as ListBlocksResponse).block!,
      ofResponse: (response) => (response as GetBlockResponse).block!,
    },
  },
  {
    stream: EventService.method.watch,
    request: { fromBlock: 2n, kinds: [EventKind.BLOCK] },
    unary: ChainService.method.getBlock,
    unaryRequests: [{ number: 2n }, { number: 3n }, { number: 4n }],
    common: {
      desc: BlockHeaderSchema,
      ofMessage: (message) => headerOf((message as WatchResponse).event),
      ofResponse: (response) => (response as GetBlockResponse).header!,
    },
    plain: {
      stream: "/events?fromBlock=2&kinds=block",
      unary: "/chain/blocks/2",
      ofMessage: (json) => (JSON.parse(json) as { block: { header: object } }).block.header,
      ofResponse: (json) => (JSON.parse(json) as { header: object }).header,
      parameters: {
        ...{ from: "2.1", fromBlock: 2, addresses: [exotic], owners: [owner], transactions: [includedHash] },
        kinds: ["program", "block"],
      },
    },
  },
  {
    stream: Health.method.watch,
    request: { service: "readiness" },
    unary: Health.method.check,
    unaryRequests: [{ service: "readiness" }],
  },
];

function headerOf(event: WatchResponse["event"]): Message {
  if (event.case !== "block") {
    throw new Error(`The event is not a block: ${event.case}`);
  }
  return event.value.header!;
}
