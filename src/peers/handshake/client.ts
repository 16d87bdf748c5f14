/** Calls peers by their endpoints, over channels that are kept between calls. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { CallError, type Channel, type OpenChannel } from "../../rpc/channel.js";
import type { Address } from "../address-book/endpoint.js";

export interface PeerClient {
  /**
   * Calls a peer.
   *
   * @throws CallError
   * @throws Failure where the peer must not be called.
   */
  call<I extends DescMessage, O extends DescMessage>(
    endpoint: string,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
  /**
   * A peer's blocks from a number on, until the signal is aborted.
   *
   * @throws CallError
   */
  blocks(endpoint: string, fromNumber: bigint, signal: AbortSignal): AsyncGenerator<Block | undefined, void>;
  /**
   * What a peer answers with a stream, until the signal is aborted.
   *
   * @throws CallError
   * @throws Failure where the peer must not be called.
   */
  stream<I extends DescMessage, O extends DescMessage>(
    endpoint: string,
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void>;
  /** The identity that the peer proved on the channel in use; undefined where there is none, or no TLS. */
  identityOf(endpoint: string): string | undefined;
  /** Closes the channel; the next call opens another one. */
  drop(endpoint: string): void;
  close(): void;
}

export interface PeerClientDeps {
  readonly openChannel: OpenChannel;
  /** Finds the address to call, or rejects with a Failure where it must not be called. */
  readonly resolve: (endpoint: string) => Promise<Address>;
  /** The identity that alone may answer at an endpoint; undefined where any may. */
  readonly expectedIdentity: (endpoint: string) => string | undefined;
  /** How long a call may take, with the opening of its channel. */
  readonly deadlineMs: number;
}

/** Most channels that are kept. */
const maxChannels = 1_024;

/** A channel that is being opened, and once it is. */
interface Entry {
  readonly opening: Promise<Channel>;
  channel?: Channel;
}

/** Builds a client; it connects when a peer is first called. */
export function createPeerClient(deps: PeerClientDeps): PeerClient {
  const { openChannel, resolve, expectedIdentity, deadlineMs } = deps;
  const channels = new LRUCache<string, Entry>({
    max: maxChannels,
    dispose: ({ opening }) => void opening.then((channel) => channel.close(), ignore),
  });

  async function open(endpoint: string, untilMs: number): Promise<Channel> {
    const address = await resolve(endpoint);
    const channel = await openChannel({ ...address, authority: new URL(endpoint).host }, untilMs);
    const expected = expectedIdentity(endpoint);
    if (channel.identity !== undefined && expected !== undefined && channel.identity !== expected) {
      channel.close();
      throw new CallError("The peer does not prove the identity that is expected of it.", false);
    }
    return channel;
  }

  function channelTo(endpoint: string, untilMs: number): Promise<Channel> {
    const known = channels.get(endpoint);
    if (known !== undefined) {
      return known.opening;
    }
    const entry: Entry = { opening: open(endpoint, untilMs) };
    channels.set(endpoint, entry);
    entry.opening.then(
      (channel) => (entry.channel = channel),
      () => {
        if (channels.peek(endpoint) === entry) {
          channels.delete(endpoint);
        }
      },
    );
    return entry.opening;
  }

  return {
    async call(endpoint, method, request) {
      const untilMs = Date.now() + deadlineMs;
      const channel = await channelTo(endpoint, untilMs);
      return await channel.call(method, request, untilMs);
    },
    async *blocks(endpoint, fromNumber, signal) {
      const channel = await channelTo(endpoint, Date.now() + deadlineMs);
      for await (const { block } of channel.stream(ChainService.method.listBlocks, { fromNumber }, signal)) {
        yield block;
      }
    },
    async *stream(endpoint, method, request, signal) {
      const channel = await channelTo(endpoint, Date.now() + deadlineMs);
      yield* channel.stream(method, request, signal);
    },
    identityOf: (endpoint) => channels.peek(endpoint)?.channel?.identity,
    drop: (endpoint) => void channels.delete(endpoint),
    close: () => channels.clear(),
  };
}

const ignore = (): void => undefined;
