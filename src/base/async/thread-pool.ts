/** Pools of threads; the library of them is loaded with the first. */
import type * as Library from "piscina";
import { lazyRequire } from "./lazy-require.js";

export type ThreadPool = Library.Piscina;

const library = lazyRequire<typeof Library>("piscina");

/** Builds a pool, as the library does. */
export function createThreadPool(options: ConstructorParameters<typeof Library.Piscina>[0]): ThreadPool {
  return new (library().Piscina)(options);
}
