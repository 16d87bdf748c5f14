/** Services that are served before all that they are made of is there: the chain of handlers is built over them once. */
import type { DescService } from "@bufbuild/protobuf";
import type { RpcError } from "./errors.js";
import type { Implementation } from "./service.js";

/** A service whose implementation comes later. */
export interface LaterService<S extends DescService> {
  /** Calls what was provided last. */
  readonly implementation: Implementation<S>;
  /** Serves by this implementation from now on. */
  provide(implementation: Implementation<S>): void;
}

/**
 * Creates a service of which only some rpcs have an implementation yet.
 *
 * @param early implementations of the rpcs that need nothing.
 * @param whyNot creates the failure of the others.
 */
export function createLaterService<S extends DescService>(
  desc: S,
  early: Partial<Implementation<S>>,
  whyNot: () => RpcError,
): LaterService<S> {
  type AnyFunction = (request: object, call: object) => object;
  let current = early as Readonly<Record<string, AnyFunction | undefined>>;
  const functions = desc.methods.map(({ localName }) => [
    localName,
    (request: object, call: object): object => {
      const invoke = current[localName];
      if (invoke === undefined) {
        throw whyNot();
      }
      return invoke(request, call);
    },
  ]);
  return {
    implementation: Object.fromEntries(functions) as Implementation<S>,
    provide(implementation) {
      current = implementation as typeof current;
    },
  };
}
