/** How an option is declared, and what follows from that. */
import type { ValueType } from "./value-types.js";

/** What is said of an option; it stands at the name of its field in the configuration. */
export interface Declaration {
  /** As a flag without its dashes, and as a key of the configuration file; made from the field's name when left out. */
  readonly name?: string;
  /** Environment variable; made from the name when left out. */
  readonly env?: string;
  readonly type: ValueType<unknown>;
  /** The value when none is given, as a flag would give it; `<name>` in it is the value of an option declared before. */
  readonly fallback?: string;
  readonly description: string;
}

/** How the variables of options begin. */
export const variablePrefix = "GATEHOUSE_";

type Declarations = Readonly<Record<string, Declaration>>;

/** What follows from a declaration. */
export interface Derived<Name extends string> {
  /** Name of its field in the configuration. */
  readonly key: string;
  readonly name: Name;
  readonly env: string;
}

/** An option with everything that follows from its declaration. */
export type Option = Declaration & Derived<string>;

/** rpcPort → rpc-port */
type KebabCase<S extends string> = S extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `-${Lowercase<First>}`}${KebabCase<Rest>}`
  : "";

/** The options of some declarations. */
export type Options<D extends Declarations> = {
  readonly [K in keyof D & string]: D[K] &
    Derived<D[K] extends { readonly name: infer N extends string } ? N : KebabCase<K>>;
};

/** What the values of some options are, by field; one that has no default may be missing. */
export type ValuesOf<O extends Declarations> = {
  readonly [K in keyof O]: O[K]["type"] extends ValueType<infer T>
    ? O[K] extends { readonly fallback: string }
      ? T
      : T | undefined
    : never;
};

/** What some options may be given as, by name. */
export type SettingsOf<O extends Readonly<Record<string, Option>>> = {
  readonly [K in keyof O as O[K]["name"]]?: O[K]["type"] extends ValueType<unknown, infer Given>
    ? Given | undefined
    : never;
};

/** Completes declarations. */
export function declareOptions<const D extends Declarations>(declarations: D): Options<D> {
  const names = new Set<string>();
  const complete = Object.entries(declarations).map(([key, declaration]): [string, Option] => {
    const option = declareOption(key, declaration);
    for (const [, named = ""] of option.fallback?.matchAll(reference) ?? []) {
      if (!names.has(named)) {
        throw new Error(`The default of --${option.name} names --${named}, which is not declared before it.`);
      }
    }
    names.add(option.name);
    return [key, option];
  });
  return Object.fromEntries(complete) as Options<D>;
}

function declareOption(key: string, declaration: Declaration): Option {
  const { name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) } = declaration;
  const env = `${variablePrefix}${name.toUpperCase().replaceAll("-", "_")}`;
  return { env, ...declaration, key, name };
}

const reference = /<([a-z-]+)>/g;

/** The default of an option, with the values of the options that it names. */
export function fallbackOf({ fallback }: Option, valueOf: (name: string) => unknown): string | undefined {
  return fallback?.replace(reference, (_, name: string) => String(valueOf(name)));
}

/** What an option is for and its default, for people. A switch is off, and nothing is no news. */
export function describeOption({ description, fallback = "", type }: Option): string {
  return fallback === "" || type.placeholder === undefined ? description : `${description} (default: ${fallback})`;
}
