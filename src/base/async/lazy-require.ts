/** Libraries that are loaded where they are first used, so that nobody waits for them who has no use for them. */
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

/**
 * Gives what loads a library of this package, once.
 *
 * @param name a library of CommonJS: what is loaded so is what an `import` of it gives, and not a second one.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the name says what it is, and only here is it said
export function lazyRequire<Library>(name: string): () => Library {
  let library: Library | undefined;
  return () => (library ??= load(name) as Library);
}
