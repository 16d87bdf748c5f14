/**
 * Arithmetic in BN254's scalar field, compiled to WebAssembly. A hash is a fixed sequence of a few hundred field
 * operations, and BigInt spends most of its time on allocating their results.
 *
 * A program is a list of operations on numbered registers. Numbers are in Montgomery form with R = 2^261: nine limbs of 29
 * bits, each stored in 64 bits, so that no sum of products overflows before its reduction. Intermediate results are below
 * 2p, not always below p. Results that leave the program are reduced below p.
 */

/**
 * Kinds of operations on registers, the first of which receives the result:
 *
 * - `add`: a + b, where one of them is a constant. Only products may read the sum.
 * - `multiply`: a · b.
 * - `dot`: a · b + c · d + e · f; none of them a sum.
 * - `multiplyAdd`: a · b + c.
 */
const kinds = ["add", "multiply", "dot", "multiplyAdd"] as const;

export interface Operation {
  readonly kind: (typeof kinds)[number];
  readonly registers: readonly number[];
}

/** Compiled program. Sets the input registers, runs, and returns the output register. */
export interface FieldProgram {
  run(inputs: ReadonlyMap<number, bigint>, output: number): bigint;
}

const limbs = 9;
const limbBits = 29;
const mask = (1n << BigInt(limbBits)) - 1n;
const registerBytes = limbs * 8;
const pageBytes = 65_536;

/**
 * Compiles a program.
 *
 * @param order order of the field, below 2^254.
 * @param constants registers that hold the same number in every run.
 */
export function compileFieldProgram(
  order: bigint,
  operations: readonly Operation[],
  constants: ReadonlyMap<number, bigint>,
): FieldProgram {
  const r = 1n << BigInt(limbs * limbBits);
  const used = [...operations.flatMap(({ registers }) => registers), ...constants.keys()];
  const scratch = Math.max(...used) + 1;
  const memory = new WebAssembly.Memory({ initial: Math.ceil(((scratch + 2) * registerBytes) / pageBytes) });
  const words = new BigUint64Array(memory.buffer);
  const module = new WebAssembly.Module(assemble(order, operations));
  const { run, multiply } = new WebAssembly.Instance(module, { env: { memory } }).exports as {
    run: () => void;
    multiply: (out: number, a: number, b: number) => void;
  };

  function write(register: number, value: bigint): void {
    let rest = value;
    for (let i = 0; i < limbs; i++) {
      words[register * limbs + i] = rest & mask;
      rest >>= BigInt(limbBits);
    }
  }
  function read(register: number): bigint {
    let value = 0n;
    for (let i = limbs - 1; i >= 0; i--) {
      value = (value << BigInt(limbBits)) + words[register * limbs + i]!;
    }
    return value % order;
  }
  const address = (register: number): number => register * registerBytes;

  for (const [register, value] of constants) {
    write(register, (value * r) % order);
  }
  const [raw, square] = [scratch, scratch + 1];
  return {
    run(inputs, output) {
      // Multiplication by R^2 or 1, divided by R: converts to and from Montgomery form.
      write(square, (r * r) % order);
      for (const [register, value] of inputs) {
        write(raw, value);
        multiply(address(register), address(raw), address(square));
      }
      run();
      write(square, 1n);
      multiply(address(raw), address(output), address(square));
      return read(raw);
    },
  };
}

/** Opcodes of the instructions in use. */
const code = {
  end: 0x0b,
  call: 0x10,
  localGet: 0x20,
  localSet: 0x21,
  i64Load: 0x29,
  i64Store: 0x37,
  i32Const: 0x41,
  i64Const: 0x42,
  i64Add: 0x7c,
  i64Sub: 0x7d,
  i64Mul: 0x7e,
  i64And: 0x83,
  i64ShrS: 0x87,
  i64ShrU: 0x88,
} as const;
const i32 = 0x7f;
const i64 = 0x7e;

type Bytes = number[];

/** Encodes an integer in LEB128, the integer encoding of WebAssembly. */
function unsigned(value: number): Bytes {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: bigint): Bytes {
  const low = Number(value & 0x7fn);
  const rest = value >> 7n;
  return (rest === 0n && low < 0x40) || (rest === -1n && low >= 0x40) ? [low] : [low | 0x80, ...signed(rest)];
}

const get = (local: number): Bytes => [code.localGet, ...unsigned(local)];
const set = (local: number): Bytes => [code.localSet, ...unsigned(local)];
const constant = (value: bigint): Bytes => [code.i64Const, ...signed(value)];
/** Limb of the register whose address a local holds. */
const load = (pointer: number, limb: number): Bytes => [...get(pointer), code.i64Load, 3, ...unsigned(8 * limb)];
const store = (pointer: number, limb: number, value: Bytes): Bytes => [
  ...get(pointer),
  ...value,
  code.i64Store,
  3,
  ...unsigned(8 * limb),
];
const plus = (a: Bytes, b: Bytes): Bytes => [...a, ...b, code.i64Add];
const times = (a: Bytes, b: Bytes): Bytes => [...a, ...b, code.i64Mul];
const low = (a: Bytes): Bytes => [...a, ...constant(mask), code.i64And];
const high = (a: Bytes, shift: 0x87 | 0x88 = code.i64ShrU): Bytes => [...a, ...constant(BigInt(limbBits)), shift];

interface WasmFunction {
  readonly parameters: number;
  readonly locals: number;
  readonly body: Bytes;
}

function assemble(order: bigint, operations: readonly Operation[]): Uint8Array<ArrayBuffer> {
  const functions: WasmFunction[] = [
    addition(),
    product(order, 1, false),
    product(order, 3, false),
    product(order, 1, true),
    {
      parameters: 0,
      locals: 0,
      body: operations.flatMap(({ kind, registers }) => [
        ...registers.flatMap((register) => [code.i32Const, ...signed(BigInt(register * registerBytes))]),
        code.call,
        ...unsigned(kinds.indexOf(kind)),
      ]),
    },
  ];
  const name = (text: string): Bytes => [...unsigned(text.length), ...Buffer.from(text, "ascii")];
  const vector = (items: readonly Bytes[]): Bytes => [...unsigned(items.length), ...items.flat()];
  const section = (id: number, content: Bytes): Bytes => [id, ...unsigned(content.length), ...content];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, vector(functions.map(({ parameters }) => [0x60, ...vector(Array(parameters).fill([i32])), 0]))),
    ...section(2, vector([[...name("env"), ...name("memory"), 0x02, 0x00, 0x01]])),
    ...section(3, vector(functions.map((_, i) => unsigned(i)))),
    ...section(
      7,
      vector([
        [...name("multiply"), 0x00, kinds.indexOf("multiply")],
        [...name("run"), 0x00, kinds.length],
      ]),
    ),
    ...section(
      10,
      vector(
        functions.map(({ locals, body }) => {
          const contents = [...(locals === 0 ? [0] : [1, ...unsigned(locals), i64]), ...body, code.end];
          return [...unsigned(contents.length), ...contents];
        }),
      ),
    ),
  ]);
}

/** Adds limb by limb, without carries. The limbs of the sum have 30 bits, which products accept. */
function addition(): WasmFunction {
  const [out, a, b] = [0, 1, 2];
  const body = Array.from({ length: limbs }, (_, i) => store(out, i, plus(load(a, i), load(b, i)))).flat();
  return { parameters: 3, locals: 0, body };
}

/**
 * Computes a sum of products in Montgomery form, with one reduction. Each step handles one limb of the left factors, and
 * adds the multiple of the order that clears the lowest limb. With an addend, bits above 2^254 are reduced at the end, so
 * that an accumulator stays small.
 */
function product(order: bigint, terms: number, hasAddend: boolean): WasmFunction {
  const parameters = 1 + 2 * terms + (hasAddend ? 1 : 0);
  const orderLimb = (i: number): bigint => (order >> BigInt(i * limbBits)) & mask;
  const negatedInverse = invert(-order & mask);
  let next = parameters;
  const local = (): number => next++;
  const sums = Array.from({ length: limbs }, local);
  const right = Array.from({ length: terms }, () => Array.from({ length: limbs }, local));
  const [left, multiple] = [local(), local()];
  const body: Bytes = [];
  const emit = (...bytes: readonly Bytes[]): void => bytes.forEach((some) => body.push(...some));

  right.forEach((locals, term) => locals.forEach((limb, i) => emit(load(2 + 2 * term, i), set(limb))));
  for (let i = 0; i < limbs; i++) {
    for (let term = 0; term < terms; term++) {
      emit(load(1 + 2 * term, i), set(left));
      for (let j = 0; j < limbs; j++) {
        emit(plus(get(sums[j]!), times(get(left), get(right[term]![j]!))), set(sums[j]!));
      }
    }
    emit(low(times(get(sums[0]!), constant(negatedInverse))), set(multiple));
    for (let j = 0; j < limbs; j++) {
      emit(plus(get(sums[j]!), times(get(multiple), constant(orderLimb(j)))), set(sums[j]!));
    }
    // Only the carry of the lowest limb is left; its local becomes the highest limb.
    emit(plus(get(sums[1]!), high(get(sums[0]!))), set(sums[1]!), constant(0n), set(sums[0]!));
    sums.push(sums.shift()!);
  }
  if (hasAddend) {
    sums.forEach((sum, i) => emit(plus(get(sum), load(parameters - 1, i)), set(sum)));
    emit(carry(sums, code.i64ShrU));
    const above = BigInt(254 - limbBits * (limbs - 1));
    emit([...get(sums.at(-1)!), ...constant(above), code.i64ShrU], set(multiple));
    sums.forEach((sum, i) =>
      emit([...get(sum), ...times(get(multiple), constant(orderLimb(i))), code.i64Sub], set(sum)),
    );
    emit(carry(sums, code.i64ShrS));
  } else {
    emit(carry(sums, code.i64ShrU));
  }
  sums.forEach((sum, i) => emit(store(0, i, get(sum))));
  return { parameters, locals: next - parameters, body };
}

/** Propagates carries, so that all limbs but the highest are below 2^29. */
function carry(sums: readonly number[], shift: 0x87 | 0x88): Bytes {
  return sums
    .slice(0, -1)
    .flatMap((sum, i) => [
      ...plus(get(sums[i + 1]!), high(get(sum), shift)),
      ...set(sums[i + 1]!),
      ...low(get(sum)),
      ...set(sum),
    ]);
}

/** Computes the inverse of an odd number modulo 2^29. */
function invert(value: bigint): bigint {
  let inverse = 1n;
  for (let bits = 1; bits < limbBits; bits *= 2) {
    inverse = (inverse * (2n - value * inverse)) & mask;
  }
  return inverse & mask;
}
