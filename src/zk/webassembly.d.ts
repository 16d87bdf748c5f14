/** The part of WebAssembly that is used here; TypeScript knows it in its library for browsers alone. */
declare namespace WebAssembly {
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  /** Sizes are in pages of 64 KiB. */
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
  /** A trap: what ran cannot go on. */
  const RuntimeError: new () => Error;
  /** Compiles off the event loop. */
  function compile(bytes: Uint8Array): Promise<Module>;
}
