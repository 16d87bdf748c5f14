/**
 * Read-ahead limit of one message for gRPC streams. By default grpc-js reads 16 messages ahead, regardless of size. For
 * large blocks that is a quarter of a small node's memory.
 */
import type { Interceptor } from "@grpc/grpc-js";
import { grpcJs } from "./grpc-js.js";

export interface ReadAheadLimit {
  readonly interceptor: Interceptor;
  /** Requests one more message: the one that waits, or the next to arrive. */
  request(): void;
}

/** Creates the read-ahead limit of one call. */
export function limitReadAhead(): ReadAheadLimit {
  let isRequested = false;
  let deliver: (() => void) | undefined;
  return {
    interceptor: (options, nextCall) =>
      new (grpcJs().InterceptingCall)(nextCall(options), {
        start(metadata, _, next) {
          next(metadata, {
            onReceiveMessage(message: unknown, next: (message: unknown) => void) {
              if (isRequested) {
                isRequested = false;
                next(message);
              } else {
                deliver = () => next(message);
              }
            },
          });
        },
      }),
    request() {
      if (deliver === undefined) {
        isRequested = true;
        return;
      }
      const deliverNext = deliver;
      deliver = undefined;
      deliverNext();
    },
  };
}
