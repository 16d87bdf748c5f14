/** The server streams of the contract, whose messages are what unary rpcs answer. */
import type { DescMethod } from "@bufbuild/protobuf";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";

/** A stream, and a request for each of its first messages: the unary rpc answers it with the same. */
export interface StreamCase {
  readonly stream: DescMethod;
  readonly request: object;
  readonly unary: DescMethod;
  readonly unaryRequests: readonly object[];
  /** Field of both answers that is compared; the whole answer without. */
  readonly part?: string;
}

/** All of them. */
export const streams: readonly StreamCase[] = [
  {
    stream: HealthService.method.watchHealth,
    request: {},
    unary: HealthService.method.getHealth,
    unaryRequests: [{}],
    part: "snapshot",
  },
  {
    stream: ChainService.method.listBlocks,
    request: { fromNumber: 2n },
    unary: ChainService.method.getBlock,
    unaryRequests: [{ number: 2n }, { number: 3n }, { number: 4n }],
    part: "block",
  },
  {
    stream: Health.method.watch,
    request: { service: "readiness" },
    unary: Health.method.check,
    unaryRequests: [{ service: "readiness" }],
  },
];
