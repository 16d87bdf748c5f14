/** Info service: identity, peers and logs of the node. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type DiagnosticLineSchema,
  type InfoService,
  McpStatus,
  type PeerSchema,
  type PublicLogLineSchema,
} from "../../gen/gatehouse/info/v1/info_pb.js";
import { createListCutter } from "../base/limits/response-limits.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";

export interface RateLimitStats {
  readonly totalIps: number;
  readonly blockedIps: number;
  readonly activeRequests: number;
}

/** Sources of the information that is available before the boot completes. */
export interface EarlyInfoDeps {
  readonly version: string;
  /** Returns `scheme://host:port`; known once the port is bound. */
  readonly connectionString: () => string;
  readonly publicLines: () => MessageInitShape<typeof PublicLogLineSchema>[];
  readonly diagnosticLines: () => MessageInitShape<typeof DiagnosticLineSchema>[];
  readonly mcp: () => { readonly enabled: boolean; readonly running: boolean };
  readonly rateLimit: () => RateLimitStats | Promise<RateLimitStats>;
}

export interface ImmutableInfo {
  readonly version: string;
  /** Public key: 0x and 64 lowercase hex digits. */
  readonly publicKey: string;
  /** Returns the text of the genesis; undefined while there is no block 0. */
  readonly genesis: () => string | undefined;
}

export interface InfoServiceDeps extends ImmutableInfo {
  readonly versionName: string;
  readonly early: ReturnType<typeof createEarlyInfo>;
  readonly connectionString: () => string;
  readonly peers: () => readonly MessageInitShape<typeof PeerSchema>[];
}

/** Creates the rpcs whose information is available before the boot completes. */
export function createEarlyInfo(deps: EarlyInfoDeps) {
  return {
    ...createVersionInfo(deps),
    getConnectionString: () => ({ connectionString: deps.connectionString() }),
    listPublicLogs: () => ({ lines: deps.publicLines() }),
    listDiagnostics: () => ({ lines: deps.diagnosticLines() }),
    getMcpStatus: () => {
      const { enabled, running } = deps.mcp();
      return { enabled, transport: "streamable-http", status: running ? McpStatus.RUNNING : McpStatus.STOPPED };
    },
    getRateLimitStats: () => deps.rateLimit(),
  } satisfies Partial<Implementation<typeof InfoService>>;
}

/** Creates the rpcs whose information never changes. */
export function createImmutableInfo({ version, publicKey, genesis }: ImmutableInfo) {
  return {
    ...createVersionInfo({ version }),
    getPublicKey: () => ({ publicKey }),
    getGenesis: () => {
      const text = genesis();
      if (text === undefined) {
        throw new RpcError("STATE_NOT_READY", "The node has no genesis block yet; start it with --genesis FILE.");
      }
      return { genesis: text };
    },
  } satisfies Partial<Implementation<typeof InfoService>>;
}

/** Creates the rpcs that require no part of the node. */
function createVersionInfo({ version }: Pick<ImmutableInfo, "version">) {
  return {
    getGreeting: (_request, { caller }) => ({ message: "Hello, World!", yourIp: caller.address }),
    getVersion: () => ({ version }),
  } satisfies Partial<Implementation<typeof InfoService>>;
}

export function createInfoService(deps: InfoServiceDeps): Implementation<typeof InfoService> {
  const { version, versionName, publicKey } = deps;
  const cutPeers = createListCutter<MessageInitShape<typeof PeerSchema>>();
  return {
    ...deps.early,
    ...createImmutableInfo(deps),
    getInfo: () => {
      const { items, nextOffset } = cutPeers(deps.peers());
      return {
        version,
        versionName,
        identity: publicKey,
        connectionString: deps.connectionString(),
        peerlist: items,
        nextPeerOffset: nextOffset,
      };
    },
    listPeers: ({ offset }) => {
      const { items, nextOffset } = cutPeers(deps.peers(), offset);
      return { peers: items, nextOffset };
    },
  };
}
