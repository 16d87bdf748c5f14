/** Pools of threads; the library of them is loaded with the first. */
import type * as Library from "piscina";
import { loadLater } from "./lazy-require.js";

export type ThreadPool = Library.Piscina;

const library = loadLater<typeof Library>("piscina");

/** Builds a pool, as the library does. */
export function createThreadPool(options: ConstructorParameters<typeof Library.Piscina>[0]): ThreadPool {
  return new (library().Piscina)(options);
}
