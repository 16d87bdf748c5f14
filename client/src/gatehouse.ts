/** The client: one node, its services, and what a program does with them. */
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
import { type RetryPolicy, usualRetry } from "./retry.js";
import { createServiceClient } from "./services.js";
import { type Signer, toKnownSigner } from "./signer.js";
import { type CallOptions, createSubmit, handIn, type Submitted, type SubmitOptions } from "./submit.js";
import type { Operation, SignedTransaction } from "./transaction.js";
import { createWaitFor, type Included } from "./wait-for.js";
import { type EventsRequest, watchEvents, watchHealth } from "./watch.js";

/** How a client calls. */
export interface GatehouseOptions {
  /** Signs what is submitted, and proves who reads. Without one, the client reads what everybody may. */
  readonly signer?: Signer | undefined;
  /**
   * The network to sign for: hash of its genesis, 0x and 64 hex digits. When left out the node is asked, once; one that
   * is not to be trusted can name another network, and use there what it is sent.
   */
  readonly network?: string | undefined;
  /**
   * Reads of blocks, transactions and programs carry the signer's identity. True when left out; false for a wallet that
   * asks its owner for each signature, where nothing private is read.
   */
  readonly proveIdentity?: boolean | undefined;
  /** How long a call may take with all of its retries; 30 seconds when left out, 0 for no limit. Streams have none. */
  readonly timeoutMs?: number | undefined;
  /** How calls are repeated that fail for the moment; false for never. */
  readonly retry?: Partial<RetryPolicy> | false | undefined;
  /**
   * Believes the network's authorities, and of the node nothing but what it proves: what each call answers is made of a
   * proof, and a call whose answer cannot be proved rejects. Rejects with ProofError.
   */
  readonly verify?: VerifyOptions | undefined;
  /** Headers of every call, for a proxy that asks for some. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What carries calls, in place of Connect over fetch: any transport of Connect. What it keeps open is its maker's. */
  readonly transport?: Transport | undefined;
}

/** A node, as a program sees it. */
export interface Gatehouse {
  readonly health: Client<typeof HealthService>;
  readonly info: Client<typeof InfoService>;
  readonly chain: Client<typeof ChainService>;
  readonly storage: Client<typeof StorageService>;
  readonly zk: Client<typeof ZkService>;
  readonly search: Client<typeof SearchService>;
  readonly attestation: Client<typeof AttestationService>;
  /** As {@link Gatehouse.watch} has it, without going on. */
  readonly event: Client<typeof EventService>;
  /** Public key of the signer: 0x and 64 lower-case hex digits; undefined without one. */
  readonly publicKey: string | undefined;
  /** Hash of the genesis of the network that is signed for. */
  network(): Promise<string>;
  /** Signs an operation and hands it in. What is submitted at once is handed in in this order, one after the other. */
  submit(operation: ProgramCreation, options?: SubmitOptions): Promise<Submitted & { readonly storageAddress: string }>;
  submit(operation: Operation, options?: SubmitOptions): Promise<Submitted>;
  /** Hands in what was signed by itself ({@link signTransaction}), here or elsewhere. */
  submitSigned(transaction: SignedTransaction, options?: CallOptions): Promise<Submitted>;
  /** Waits until a transaction is in a block, a minute when nothing is said. */
  waitFor(hash: string, options?: CallOptions): Promise<Included>;
  /**
   * What happens on the chain, as it happens, until the loop is left or the client is closed. A connection that is lost is made
   * anew, and it goes on after the last message that was given: no gap, no repetition.
   */
  watch(request?: EventsRequest, options?: Pick<CallOptions, "signal">): AsyncIterableIterator<WatchResponse>;
  /** The states of the node's health, from the present one on, until the client is closed; a lost connection is made anew. */
  watchHealth(options?: Pick<CallOptions, "signal">): AsyncIterableIterator<HealthSnapshot>;
  /** Ends what is under way, with CLOSED; resolves when it has ended. */
  close(): Promise<void>;
}

/**
 * A client of a node.
 *
 * @param url of the node's public port, such as http://127.0.0.1:53550; a path is one that a proxy puts before.
 * @throws TypeError for what cannot be: a URL that is none, a network or a public key that is no 64 hex digits.
 */
export function createGatehouse(url: string | URL, options: GatehouseOptions = {}): Gatehouse {
  const { proveIdentity = true, timeoutMs = 30_000, headers, retry: wanted } = options;
  const retry = { ...usualRetry, ...(wanted === false ? { attempts: 1 } : wanted) };
  const signer = options.signer === undefined ? undefined : toKnownSigner(options.signer);
  const lifetime = createClientLifecycle();
  const transport = options.transport ?? connectOverFetch(baseUrlOf(url), headers);
  const common = { transport, lifetime, retry, timeoutMs };
  const session = options.verify && createProofSession(options.verify);
  const callsOf = (deps: CallsDeps): Transport =>
    session === undefined ? createCalls(deps) : verifyCalls(createCalls(deps), session, timeoutMs);
  const anonymous = callsOf(common);
  const plainChain = createServiceClient(ChainService, anonymous);
  const network = networkOf(options.network ?? session?.genesisHash, plainChain);
  const proving =
    signer === undefined || !proveIdentity
      ? anonymous
      : callsOf({ ...common, identity: createIdentity(signer, network) });
  const submit = signer && createSubmit({ chain: plainChain, lifetime, signer, network });
  const health = createServiceClient(HealthService, anonymous);
  const event = createServiceClient(EventService, proving);
  const going = { lifetime, retry };
  // What a node tells by itself is no proof.
  const told = session === undefined ? createServiceClient(EventService, anonymous) : undefined;
  const waitFor = createWaitFor({ chain: plainChain, lifetime, event: told });
  return {
    health,
    info: createServiceClient(InfoService, anonymous),
    chain: createServiceClient(ChainService, proving),
    storage: createServiceClient(StorageService, proving),
    zk: createServiceClient(ZkService, anonymous),
    search: createServiceClient(SearchService, proving),
    attestation: createServiceClient(AttestationService, anonymous),
    event,
    publicKey: signer?.publicKey,
    network,
    submit: (async (operation: Operation, submitOptions?: SubmitOptions) => {
      if (submit === undefined) {
        throw new TypeError("To submit, the client needs a signer: createGatehouse(url, { signer }).");
      }
      return await submit(operation, submitOptions);
    }) as Gatehouse["submit"],
    submitSigned: (signed, callOptions = {}) => handIn(plainChain, signed, callOptions),
    waitFor: (hash, callOptions = {}) => waitFor(hash, callOptions),
    watch: (request = {}, { signal } = {}) => watchEvents(event, request, going, signal),
    watchHealth: ({ signal } = {}) => watchHealth(health, going, signal),
    close: () => lifetime.close(),
  };
}

function baseUrlOf(url: string | URL): string {
  const { protocol, href } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`A node's URL begins with http:// or https://, not ${protocol}`);
  }
  return href.replace(/\/$/, "");
}

/** The network that is named, or that the node names. */
function networkOf(named: string | undefined, chain: Client<typeof ChainService>): () => Promise<string> {
  const given = named?.toLowerCase();
  if (given !== undefined && !hex32.test(given)) {
    throw new TypeError("network must be the hash of a genesis: 0x and 64 hex digits.");
  }
  let asked: Promise<string> | undefined = given === undefined ? undefined : Promise.resolve(given);
  return async () => {
    asked ??= chain.getHead({}).then(({ genesisHash }) => genesisHash);
    try {
      return await asked;
    } catch (error) {
      asked = undefined;
      throw error;
    }
  };
}
