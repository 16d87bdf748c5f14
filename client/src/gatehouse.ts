/** Client of one node: its services, and helpers to submit transactions and watch events. */
import type { Client, Transport } from "@connectrpc/connect";
import { AttestationService } from "../../gen/gatehouse/attestation/v1/attestation_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { EventService, type WatchResponse } from "../../gen/gatehouse/event/v1/event_pb.js";
import { HealthService, type HealthSnapshot } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { SearchService } from "../../gen/gatehouse/search/v1/search_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { ZkService } from "../../gen/gatehouse/zk/v1/zk_pb.js";
import { hex32 } from "../../src/base/crypto/signing-payloads.js";
import { type CallsDeps, createCalls } from "./calls.js";
import { connectOverFetch } from "./fetch-transport.js";
import { createIdentity } from "./identity.js";
import { createClientLifecycle } from "./lifetime.js";
import type { ProgramCreation } from "./operations.js";
import { createProofSession, type VerifyOptions } from "./proof/session.js";
import { verifyCalls } from "./proof/verified-calls.js";
import { type RetryPolicy, defaultRetry } from "./retry.js";
import { createServiceClient } from "./services.js";
import { type Signer, validateSigner } from "./signer.js";
import { type CallOptions, createSubmit, submitSigned, type Submitted, type SubmitOptions } from "./submit.js";
import type { Operation, SignedTransaction } from "./transaction.js";
import { createWaitFor, type Included } from "./wait-for.js";
import { type EventsRequest, watchEvents, watchHealth } from "./watch.js";

/** Options of {@link createGatehouse}. */
export interface GatehouseOptions {
  /** Signs transactions and proves the identity of the reader. Without a signer, the client reads public data only. */
  readonly signer?: Signer | undefined;
  /**
   * Network to sign for: hash of its genesis, 0x and 64 hex digits. If left out, the client requests the hash from the
   * node, once. An untrusted node could return another network and replay the transactions there.
   */
  readonly network?: string | undefined;
  /**
   * Sends the signer's identity with reads of blocks, transactions and programs. Default: true. Set false for a wallet
   * that prompts its owner for each signature, if the program reads no private data.
   */
  readonly proveIdentity?: boolean | undefined;
  /**
   * Time limit in milliseconds of a call with all of its retries. Default: 30,000; 0 for no limit. Streams have none.
   */
  readonly timeoutMs?: number | undefined;
  /** Retry policy for transient errors; false disables retries. */
  readonly retry?: Partial<RetryPolicy> | false | undefined;
  /**
   * Trusts the authorities of the network, and the node only for what it proves. Each response is built from a proof. A
   * call rejects with ProofError if its response cannot be proven.
   */
  readonly verify?: VerifyOptions | undefined;
  /** Headers of every call, for a proxy that requires some. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Replacement for Connect over fetch: any Connect transport. Closing its connections is left to its creator. */
  readonly transport?: Transport | undefined;
}

/** Client of a node. */
export interface Gatehouse {
  readonly health: Client<typeof HealthService>;
  readonly info: Client<typeof InfoService>;
  readonly chain: Client<typeof ChainService>;
  readonly storage: Client<typeof StorageService>;
  readonly zk: Client<typeof ZkService>;
  readonly search: Client<typeof SearchService>;
  readonly attestation: Client<typeof AttestationService>;
  /** Event service. Unlike {@link Gatehouse.watch}, its streams do not reconnect. */
  readonly event: Client<typeof EventService>;
  /** Public key of the signer: 0x and 64 lower-case hex digits; undefined without a signer. */
  readonly publicKey: string | undefined;
  /** Returns the hash of the genesis of the network to sign for. */
  network(): Promise<string>;
  /** Signs an operation and submits it. Concurrent calls are submitted one after the other, in call order. */
  submit(operation: ProgramCreation, options?: SubmitOptions): Promise<Submitted & { readonly storageAddress: string }>;
  submit(operation: Operation, options?: SubmitOptions): Promise<Submitted>;
  /** Submits a transaction that was signed separately ({@link signTransaction}), here or elsewhere. */
  submitSigned(transaction: SignedTransaction, options?: CallOptions): Promise<Submitted>;
  /** Waits until a transaction is in a block. Default time limit: one minute. */
  waitFor(hash: string, options?: CallOptions): Promise<Included>;
  /**
   * Yields events of the chain as they happen, until the loop ends or the client is closed. Reconnects after a lost
   * connection and resumes after the last event, without gaps or repetitions.
   */
  watch(request?: EventsRequest, options?: Pick<CallOptions, "signal">): AsyncIterableIterator<WatchResponse>;
  /**
   * Yields the health of the node, starting with the current state, until the client is closed. Reconnects if needed.
   */
  watchHealth(options?: Pick<CallOptions, "signal">): AsyncIterableIterator<HealthSnapshot>;
  /** Ends all calls in flight with CLOSED; resolves when they have ended. */
  close(): Promise<void>;
}

/**
 * Creates a client of a node.
 *
 * @param url of the public port of the node, such as http://127.0.0.1:53550, with an optional path that a proxy
 * requires.
 * @throws TypeError if the URL, the network or the public key is invalid.
 */
export function createGatehouse(url: string | URL, options: GatehouseOptions = {}): Gatehouse {
  const { proveIdentity = true, timeoutMs = 30_000, headers, retry: retryOption } = options;
  const retry = { ...defaultRetry, ...(retryOption === false ? { attempts: 1 } : retryOption) };
  const signer = options.signer === undefined ? undefined : validateSigner(options.signer);
  const lifetime = createClientLifecycle();
  const transport = options.transport ?? connectOverFetch(baseUrlOf(url), headers);
  const callDeps = { transport, lifetime, retry, timeoutMs };
  const session = options.verify && createProofSession(options.verify);
  const createTransport = (deps: CallsDeps): Transport =>
    session === undefined ? createCalls(deps) : verifyCalls(createCalls(deps), session, timeoutMs);
  const anonymousTransport = createTransport(callDeps);
  const plainChain = createServiceClient(ChainService, anonymousTransport);
  const network = networkOf(options.network ?? session?.genesisHash, plainChain);
  const identityTransport =
    signer === undefined || !proveIdentity
      ? anonymousTransport
      : createTransport({ ...callDeps, identity: createIdentity(signer, network) });
  const submit = signer && createSubmit({ chain: plainChain, lifetime, signer, network });
  const health = createServiceClient(HealthService, anonymousTransport);
  const event = createServiceClient(EventService, identityTransport);
  const watchDeps = { lifetime, retry };
  // Events of a node prove nothing, so a verifying client does not use them.
  const events = session === undefined ? createServiceClient(EventService, anonymousTransport) : undefined;
  const waitFor = createWaitFor({ chain: plainChain, lifetime, event: events });
  return {
    health,
    info: createServiceClient(InfoService, anonymousTransport),
    chain: createServiceClient(ChainService, identityTransport),
    storage: createServiceClient(StorageService, identityTransport),
    zk: createServiceClient(ZkService, anonymousTransport),
    search: createServiceClient(SearchService, identityTransport),
    attestation: createServiceClient(AttestationService, anonymousTransport),
    event,
    publicKey: signer?.publicKey,
    network,
    submit: (async (operation: Operation, submitOptions?: SubmitOptions) => {
      if (submit === undefined) {
        throw new TypeError("To submit, the client needs a signer: createGatehouse(url, { signer }).");
      }
      return await submit(operation, submitOptions);
    }) as Gatehouse["submit"],
    submitSigned: (signed, callOptions = {}) => submitSigned(plainChain, signed, callOptions),
    waitFor: (hash, callOptions = {}) => waitFor(hash, callOptions),
    watch: (request = {}, { signal } = {}) => watchEvents(event, request, watchDeps, signal),
    watchHealth: ({ signal } = {}) => watchHealth(health, watchDeps, signal),
    close: () => lifetime.close(),
  };
}

function baseUrlOf(url: string | URL): string {
  const { protocol, href } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`A node's URL must start with http:// or https://, not ${protocol}`);
  }
  return href.replace(/\/$/, "");
}

/** Creates a function that returns the configured network, or the one that the node reports. */
function networkOf(configured: string | undefined, chain: Client<typeof ChainService>): () => Promise<string> {
  const pinned = configured?.toLowerCase();
  if (pinned !== undefined && !hex32.test(pinned)) {
    throw new TypeError("network must be the hash of a genesis: 0x and 64 hex digits.");
  }
  let hash: Promise<string> | undefined = pinned === undefined ? undefined : Promise.resolve(pinned);
  return async () => {
    hash ??= chain.getHead({}).then(({ genesisHash }) => genesisHash);
    try {
      return await hash;
    } catch (error) {
      hash = undefined;
      throw error;
    }
  };
}
