/** Calls peers by their endpoints, over channels that stay open between calls. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import { peerReasons } from "../address-book/peer-reasons.js";
import { CallError, type Channel, type OpenChannel } from "../../rpc/channel.js";

export interface PeerClientDeps {
  readonly openChannel: OpenChannel;
  /** Resolves the address to call; rejects with an RpcError if the node must not call it. */
  readonly resolve: (endpoint: string) => Promise<{ readonly ip: string; readonly port: number }>;
  /** Returns the only identity that may respond at an endpoint; undefined if any identity may. */
  readonly expectedIdentity: (endpoint: string) => string | undefined;
  /** Deadline of a call in milliseconds, including the time to open a channel. */
  readonly deadlineMs: number;
}

/** Limit on open channels. */
const maxChannels = 1_024;

export type PeerClient = ReturnType<typeof createPeerClient>;

/** Creates a client. The client connects to a peer at the first call. */
export function createPeerClient({ openChannel, resolve, expectedIdentity, deadlineMs }: PeerClientDeps) {
  /** Pending channel, and the channel once it is open. */
  type ChannelEntry = { readonly opening: Promise<Channel>; channel?: Channel };
  const channels = new LRUCache<string, ChannelEntry>({
    max: maxChannels,
    dispose({ opening }) {
      opening.then(
        (channel) => channel.close(),
        () => undefined,
      );
    },
  });

  async function open(endpoint: string, untilMs: number): Promise<Channel> {
    const address = await resolve(endpoint);
    const channel = await openChannel({ ...address, authority: new URL(endpoint).host }, untilMs);
    const expected = expectedIdentity(endpoint);
    if (channel.identity !== undefined && expected !== undefined && channel.identity !== expected) {
      channel.close();
      throw new CallError(peerReasons.changedKey(channel.identity, expected), false);
    }
    return channel;
  }

  function channelTo(endpoint: string, untilMs: number): Promise<Channel> {
    const existing = channels.get(endpoint);
    if (existing !== undefined) {
      return existing.opening;
    }
    const entry: ChannelEntry = { opening: open(endpoint, untilMs) };
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
    /**
     * Calls a method of a peer.
     *
     * @throws CallError if the call fails.
     * @throws RpcError if the node must not call the peer.
     */
    async call<I extends DescMessage, O extends DescMessage>(
      endpoint: string,
      method: DescMethodUnary<I, O>,
      request: MessageInitShape<I>,
    ): Promise<MessageShape<O>> {
      const untilMs = Date.now() + deadlineMs;
      const channel = await channelTo(endpoint, untilMs);
      return await channel.call(method, request, untilMs);
    },
    /** Calls a streaming method of a peer, until the signal is aborted. Throws as `call` does. */
    async *stream<I extends DescMessage, O extends DescMessage>(
      endpoint: string,
      method: DescMethodServerStreaming<I, O>,
      request: MessageInitShape<I>,
      signal: AbortSignal,
    ): AsyncGenerator<MessageShape<O>, void> {
      const channel = await channelTo(endpoint, Date.now() + deadlineMs);
      if (!signal.aborted) {
        yield* channel.stream(method, request, signal);
      }
    },
    /** Returns the identity that the peer proved on the current channel; undefined without a channel or without TLS. */
    identityOf: (endpoint: string) => channels.peek(endpoint)?.channel?.identity,
    /** Closes the channel. The next call opens a new one. */
    drop: (endpoint: string) => void channels.delete(endpoint),
    close: () => channels.clear(),
  };
}
