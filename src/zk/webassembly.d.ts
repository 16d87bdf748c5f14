/**
 * Declares the part of the WebAssembly API that the node uses. TypeScript declares WebAssembly only in its DOM library.
 */
declare namespace WebAssembly {
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  /** Creates a memory. Sizes are in pages of 64 KiB. */
  const Memory: new (descriptor: {
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }) => Memory;
  type Module = object;
  const Module: new (bytes: Uint8Array<ArrayBuffer>) => Module;
  interface Instance {
    readonly exports: Readonly<Record<string, unknown>>;
  }
  const Instance: new (module: Module, imports: Readonly<Record<string, Readonly<Record<string, Memory>>>>) => Instance;
  /** Trap: the instance cannot continue. */
  const RuntimeError: new () => Error;
  /** Compiles a module without blocking the event loop. */
  function compile(bytes: Uint8Array): Promise<Module>;
}
