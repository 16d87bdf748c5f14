/** Thread pools. The library is loaded when the first pool is created. */
import type * as Library from "piscina";
import { lazyRequire } from "./lazy-require.js";

export type ThreadPool = Library.Piscina;

const library = lazyRequire<typeof Library>("piscina");

export function createThreadPool(options: ConstructorParameters<typeof Library.Piscina>[0]): ThreadPool {
  return new (library().Piscina)(options);
}
