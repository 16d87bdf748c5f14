/** Services that start before all their dependencies exist, so that the handler chain is built only once. */
import type { DescService } from "@bufbuild/protobuf";
import type { RpcError } from "./errors.js";
import type { Implementation } from "./service.js";

/** Service whose implementation is provided after startup. */
export interface DeferredService<S extends DescService> {
  /** Implementation that calls the functions provided last. */
  readonly implementation: Implementation<S>;
  /** Replaces the current implementation. */
  provide(implementation: Implementation<S>): void;
}

/**
 * Creates a service in which only some rpcs have an implementation so far.
 *
 * @param early implementations of the rpcs without dependencies.
 * @param unavailable creates the error that the other rpcs throw.
 */
export function createDeferredService<S extends DescService>(
  desc: S,
  early: Partial<Implementation<S>>,
  unavailable: () => RpcError,
): DeferredService<S> {
  type AnyFunction = (request: object, call: object) => object;
  let current = early as Readonly<Record<string, AnyFunction | undefined>>;
  const functions = desc.methods.map(({ localName }) => [
    localName,
    (request: object, call: object): object => {
      const invoke = current[localName];
      if (invoke === undefined) {
        throw unavailable();
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
