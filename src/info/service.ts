/** The info service: who the node is, whom it knows, what it logs. */
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

/** What callers have of the node. */
export interface RateLimitStats {
  readonly totalIps: number;
  readonly blockedIps: number;
  readonly activeRequests: number;
}

/** The parts of what a node tells before it has booted. */
export interface EarlyInfoDeps {
  readonly version: string;
  /** scheme://host:port; known once the port is bound. */
  readonly connectionString: () => string;
  readonly publicLines: () => MessageInitShape<typeof PublicLogLineSchema>[];
  readonly diagnosticLines: () => MessageInitShape<typeof DiagnosticLineSchema>[];
  readonly mcp: () => { readonly enabled: boolean; readonly running: boolean };
  readonly rateLimit: () => RateLimitStats | Promise<RateLimitStats>;
}

/** What of a node never changes. */
export interface LastingInfo {
  readonly version: string;
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** The text of the genesis; undefined while there is no block 0. */
  readonly genesis: () => string | undefined;
}

export interface InfoServiceDeps extends LastingInfo {
  readonly versionName: string;
  /** The rpcs that the node has served since its port was bound. */
  readonly early: ReturnType<typeof createEarlyInfo>;
  readonly connectionString: () => string;
  readonly peers: () => readonly MessageInitShape<typeof PeerSchema>[];
}

/** The rpcs that tell what is known before the node has booted. */
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

/** The rpcs that tell what never changes. */
export function createLastingInfo({ version, publicKey, genesis }: LastingInfo) {
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

/** The rpcs that need no part of a node. */
function createVersionInfo({ version }: Pick<LastingInfo, "version">) {
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
    ...createLastingInfo(deps),
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
