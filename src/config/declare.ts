/** Declarations of options, and the names and types derived from them. */
import { InputError } from "../base/errors/start-error.js";
import type { ValueType } from "./value-types.js";

/** Invalid setting. The message is one sentence with the option, its source and the allowed values. */
export class ConfigError extends InputError {
  override readonly name = "ConfigError";
}

/** Declaration of an option. Its key is the name of the field in the configuration. */
export interface Declaration {
  /**
   * Name of the flag without dashes, and of the key in the configuration file. Default: the field name in kebab case.
   */
  readonly name?: string;
  /** Environment variable. Default: derived from the name. */
  readonly env?: string;
  readonly type: ValueType<unknown>;
  /** Default value in the form of a flag value. `<name>` stands for the value of an option declared earlier. */
  readonly fallback?: string;
  readonly description: string;
}

export const variablePrefix = "GATEHOUSE_";

type Declarations = Readonly<Record<string, Declaration>>;

export interface Derived<Name extends string> {
  readonly key: string;
  readonly name: Name;
  readonly env: string;
}

/** Option: its declaration with the derived names. */
export type Option = Declaration & Derived<string>;

/** Converts a name to kebab case: rpcPort → rpc-port. */
type KebabCase<S extends string> = S extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `-${Lowercase<First>}`}${KebabCase<Rest>}`
  : "";

export type Options<D extends Declarations> = {
  readonly [K in keyof D & string]: D[K] &
    Derived<D[K] extends { readonly name: infer N extends string } ? N : KebabCase<K>>;
};

/** Configuration values of a set of options, by field. A value without a default may be undefined. */
export type ValuesOf<O extends Declarations> = {
  readonly [K in keyof O]: O[K]["type"] extends ValueType<infer T>
    ? O[K] extends { readonly fallback: string }
      ? T
      : T | undefined
    : never;
};

/** Accepted input values of a set of options, by option name. */
export type SettingsOf<O extends Readonly<Record<string, Option>>> = {
  readonly [K in keyof O as O[K]["name"]]?: O[K]["type"] extends ValueType<unknown, infer Input>
    ? Input | undefined
    : never;
};

export function declareOptions<const D extends Declarations>(declarations: D): Options<D> {
  const entries = Object.entries(declarations).map(([key, declaration]) => {
    const { name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) } = declaration;
    const env = `${variablePrefix}${name.toUpperCase().replaceAll("-", "_")}`;
    return [key, { env, ...declaration, key, name }] as const;
  });
  return Object.fromEntries(entries) as unknown as Options<D>;
}

/** Returns the default of an option, with the values of the options that it refers to. */
export function fallbackOf({ fallback }: Option, valueOf: (name: string) => unknown): string | undefined {
  return fallback?.replace(/<([a-z-]+)>/g, (_, name: string) => String(valueOf(name)));
}

/**
 * Returns the description of an option with its default. Omits an empty default, and that of a switch, which is off.
 */
export function describeOption({ description, fallback = "", type }: Option): string {
  return fallback === "" || type.placeholder === undefined ? description : `${description} Default: ${fallback}.`;
}
