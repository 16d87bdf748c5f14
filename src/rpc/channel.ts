/**
 * Interface through which features call another node: methods by descriptor, messages as plain literals. Counterpart of
 * service.ts; the transport is injected.
 */
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";

export interface ChannelTarget {
  /** IP address, so that the address that was validated is the one dialed. */
  readonly ip: string;
  readonly port: number;
  /** Host or host:port, as callers write the address. */
  readonly authority: string;
}

export interface Channel {
  /**
   * Public key that the other end proves on every connection: 0x and 64 lowercase hex digits; undefined without TLS.
   */
  readonly identity: string | undefined;
  /**
   * Calls a unary rpc.
   *
   * @param untilMs deadline of the call, in milliseconds since the epoch.
   * @throws CallError
   */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    untilMs: number,
  ): Promise<MessageShape<O>>;
  /**
   * Calls a server-streaming rpc. The stream ends early if the signal is aborted.
   *
   * @throws CallError
   */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void>;
  /** Rejects new calls; calls in flight still complete. */
  close(): void;
}

/**
 * Opens a channel.
 *
 * @param untilMs deadline for the attempt, in milliseconds since the epoch.
 * @throws CallError if no node responds, or if the node proves no key over TLS.
 */
export type OpenChannel = (target: ChannelTarget, untilMs: number) => Promise<Channel>;

export class CallError extends Error {
  override readonly name = "CallError";

  constructor(
    message: string,
    /** True if the other node responded with an error of its own; false for any other error. */
    readonly isResponse: boolean,
    /** True if the other node denied the permission. */
    readonly isDenied = false,
  ) {
    super(message.slice(0, 300));
  }
}
