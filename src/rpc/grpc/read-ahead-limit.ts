/**
 * Keeps a stream of messages from being read further ahead than one. By itself grpc-js reads sixteen, whatever they weigh:
 * of large blocks, a quarter of what a small node may have.
 */
import type { Interceptor } from "@grpc/grpc-js";
import { grpcJs } from "./grpc-js.js";

export interface ReadAheadLimit {
  readonly interceptor: Interceptor;
  /** The reader wants one more message; it gets the one that is there, or the next that comes. */
  ask(): void;
}

/** Builds what one call is made with. */
export function limitReadAhead(): ReadAheadLimit {
  let isAsked = false;
  let deliver: (() => void) | undefined;
  return {
    interceptor: (options, nextCall) =>
      new (grpcJs().InterceptingCall)(nextCall(options), {
        start(metadata, _, next) {
          next(metadata, {
            onReceiveMessage(message: unknown, give: (message: unknown) => void) {
              if (isAsked) {
                isAsked = false;
                give(message);
              } else {
                deliver = () => give(message);
              }
            },
          });
        },
      }),
    ask() {
      if (deliver === undefined) {
        isAsked = true;
        return;
      }
      const given = deliver;
      deliver = undefined;
      given();
    },
  };
}
