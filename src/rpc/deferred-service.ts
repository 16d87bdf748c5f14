/** Services that start before all their dependencies exist, so that the handler chain is built only once. */
import type { DescService } from "@bufbuild/protobuf";
import type { RpcError } from "./errors.js";
import type { Implementation } from "./service.js";

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
) {
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
    /** Implementation that calls the functions provided last. */
    implementation: Object.fromEntries(functions) as Implementation<S>,
    provide(implementation: Implementation<S>) {
      current = implementation as typeof current;
    },
  };
}
