/**
 * What another node is to the features that call it: methods by descriptor, messages as plain literals. The counterpart
 * of service.ts; what carries the calls is injected.
 */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";

/** Where another node listens. */
export interface ChannelTarget {
  /** An IP address, so that what was checked is what is called. */
  readonly ip: string;
  readonly port: number;
  /** host or host:port, as callers write it. */
  readonly authority: string;
}

/** A way to one node, kept between calls. */
export interface Channel {
  /** The key that the other end proved, and always has to prove: 0x and 64 lower-case hex digits; undefined without TLS. */
  readonly identity: string | undefined;
  /**
   * Calls a unary rpc.
   *
   * @param untilMs milliseconds since the epoch after which nobody waits for the answer.
   * @throws CallError
   */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    untilMs: number,
  ): Promise<MessageShape<O>>;
  /**
   * Calls an rpc that answers with a stream, which ends early when the signal is aborted.
   *
   * @throws CallError
   */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void>;
  /** Takes no more calls; those under way are answered. */
  close(): void;
}

/**
 * Opens a channel.
 *
 * @param untilMs milliseconds since the epoch after which it is given up.
 * @throws CallError when nobody answers there, or somebody without a key.
 */
export type OpenChannel = (target: ChannelTarget, untilMs: number) => Promise<Channel>;

/** What went wrong with a call. */
export class CallError extends Error {
  override readonly name = "CallError";

  constructor(
    message: string,
    /** The other node answered, with a failure of its own; otherwise nobody has. */
    readonly isAnswer: boolean,
  ) {
    super(message.slice(0, 300));
  }
}
