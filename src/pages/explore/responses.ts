/**
 * JSON responses of the node over HTTP, reduced to the members that views show. proto/gatehouse documents each field.
 */

export interface HeadResponse {
  readonly number: number;
  readonly hash: string;
  readonly timestamp: number;
  readonly genesisHash: string;
  /** Header and signature in base64; empty for block 0. */
  readonly header: string;
  readonly signature: string;
  /** Latest statement of an authority about its latest block, in base64; missing if the node has none. */
  readonly head?: { readonly statement: string; readonly signature: string };
}

export interface HealthResponse {
  readonly status: string;
  readonly version: string;
}

export interface BlockSummary {
  readonly number: number;
  readonly hash: string;
  readonly timestamp: number;
  readonly proposer: string;
  /** Null if the node does not store its transactions. */
  readonly transactionCount: number | null;
}

export interface BlocksResponse {
  readonly blocks: readonly BlockSummary[];
  readonly nextPageToken?: string;
}

export interface BlockResponse {
  readonly hash: string;
  readonly header: {
    readonly number: number;
    readonly previousHash: string;
    readonly timestamp: number;
    readonly transactionsHash: string;
    readonly proposer: string;
    readonly commitmentRoot: string | null;
    readonly genesisHash: string;
    readonly stateRoot: string;
  };
  readonly transactionHashes: readonly string[];
  /** Block as it was signed, in base64. */
  readonly block: { readonly header: string; readonly signature: string };
}

/** Signed content of a transaction. `storage` or `zk` has one member, named after the operation. */
export interface TransactionBody {
  readonly sender: string;
  readonly nonce: number;
  readonly timestampMs: number;
  readonly network: string;
  readonly expiresMs: number;
  readonly storage?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly zk?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface TransactionResponse {
  readonly hash: string;
  readonly status: string;
  readonly blockNumber: number | null;
  readonly reason: string | null;
  readonly body?: TransactionBody;
}

export interface TransactionSummary {
  readonly hash: string;
  readonly blockNumber: number;
  readonly index: number;
  readonly timestamp: number;
  readonly body?: TransactionBody;
}

export interface TransactionsResponse {
  readonly transactions: readonly TransactionSummary[];
  readonly nextPageToken?: string;
}

export interface AccessRule {
  readonly mode: string;
  readonly allowed: readonly string[];
  readonly blacklisted: readonly string[];
  readonly groups: Readonly<
    Record<string, { readonly members: readonly string[]; readonly permissions: readonly string[] }>
  >;
}

export interface ProgramSummary {
  readonly storageAddress: string;
  readonly programName: string;
  readonly owner: string;
  readonly encoding: string;
  readonly sizeBytes: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface ProgramResponse extends ProgramSummary {
  readonly acl: AccessRule;
}

export interface ProgramsResponse {
  readonly programs: readonly ProgramSummary[];
  readonly nextPageToken?: string;
}

export interface ProgramChange {
  readonly blockNumber: number;
  readonly timestamp: number;
  readonly transactionHash: string;
  readonly sender: string;
  readonly kind: string;
  readonly fields: readonly string[];
}

export interface HistoryResponse {
  readonly changes: readonly ProgramChange[];
  readonly nextPageToken?: string;
}

export interface SenderResponse {
  /** Public key of the sender: 0x and 64 lower-case hex digits. */
  readonly address: string;
  readonly nonce: number;
}

export interface RootResponse {
  readonly rootHash: string;
  readonly blockNumber: number;
  readonly leafCount: number;
}

export interface MerkleProofResponse {
  readonly commitment: string;
  readonly blockNumber: number;
  readonly proof: {
    readonly siblings: readonly (readonly [string])[];
    readonly pathIndices: readonly number[];
    readonly root: string;
    readonly leaf: string;
    readonly leafIndex: number;
  };
}

export interface NullifierResponse {
  readonly used: boolean;
  readonly blockNumber?: number;
  readonly transactionHash?: string;
}

export interface PeerResponse {
  readonly connection: { readonly string: string };
  readonly identity: string;
  readonly verification: { readonly status: boolean; readonly message: string | null };
  readonly sync: { readonly block: number | null; readonly block_hash: string | null };
  readonly status: { readonly online: boolean; readonly ready: boolean; readonly timestamp: number | null };
}

export interface InfoResponse {
  readonly identity: string;
  readonly connectionString: string;
  readonly peerlist: readonly PeerResponse[];
}

/** Subsystems by name, reduced to the members that views show. */
export interface SubsystemsResponse {
  readonly subsystems: Readonly<
    Record<
      string,
      {
        readonly status: string;
        readonly lastError?: { readonly message?: string } | null;
        readonly extra?: {
          readonly reason?: string;
          readonly snapshot?: {
            readonly block: number;
            readonly done_bytes: number;
            readonly total_bytes: number;
            readonly bytes_per_s: number;
            readonly left_s: number | null;
          };
        };
      }
    >
  >;
}

/** Search result. Of the members after `kind`, only the one of that kind is set. */
export interface SearchResult {
  readonly kind: string;
  readonly block?: BlockSummary;
  readonly transaction?: { readonly hash: string; readonly status: string };
  readonly identity?: { readonly address: string };
  readonly commitment?: { readonly commitment: string; readonly leafIndex: number };
  readonly nullifier?: { readonly nullifierHash: string };
  readonly program?: ProgramSummary;
}

export interface SearchResponse {
  readonly results: readonly SearchResult[];
}
