/** Loads libraries on first use, so that processes that never use them do not pay for loading. */
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

/**
 * Returns a function that loads a library of this package on its first call and caches it.
 *
 * @param name name of a CommonJS library; `require` and `import` share one instance of it.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- callers name the type of the library
export function lazyRequire<Library>(name: string): () => Library {
  let library: Library | undefined;
  return () => (library ??= load(name) as Library);
}
