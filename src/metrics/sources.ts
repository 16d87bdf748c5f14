/** What metrics are made of. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HealthSnapshotSchema } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { Outcome } from "../rpc/errors.js";

/** What is read when somebody asks for the metrics, all at one time. */
export interface Sources {
  /** The health as the contract shows it. */
  readonly health: MessageInitShape<typeof HealthSnapshotSchema>;
  readonly facts: NodeFacts;
}

/** What the node knows beside its health. */
export interface NodeFacts {
  readonly block: number | undefined;
  /** Newest block of the verified peers; undefined while there is none. */
  readonly peerBlock: number | undefined;
  readonly peers: { readonly known: number; readonly verified: number; readonly online: number };
  readonly leaves: number;
  /** Storage programs that were ever made. */
  readonly programs: number;
  readonly requests: { readonly active: number; readonly limitedAddresses: number };
}

/** An answered request. */
export interface SettledRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined where none was asked for. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
}
