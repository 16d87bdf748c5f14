/** Value types of options: the check of each type, and the text of its error message. */
import { isIP } from "node:net";
import { resolve } from "node:path";
import type { z } from "zod";

/** Zod module. A parameter of the schemas, since most code that lists options reads no value and need not load zod. */
type Zod = typeof z;

/** Type of an option value: accepted input `Input`, checked value `T`. */
export interface ValueType<T, Input = unknown> {
  /** Placeholder of the value in the help; undefined for a switch, which has no value. */
  readonly placeholder: string | undefined;
  /** Allowed values, as the end of the message "… must be". */
  readonly allowed: string;
  /** Creates the schema. It accepts text (flag, variable, default) or a value of the configuration file. */
  readonly schema: (zod: Zod) => z.ZodType<T, Input>;
  /** Makes the value independent of the working directory. Omitted if the value does not depend on it. */
  resolve?(value: T, cwd: string): T;
}

export const text = (placeholder: string, allowed: string): ValueType<string, string> => ({
  placeholder,
  allowed,
  schema: (z) => z.string().min(1),
});

/** Returns a type for paths. The checked path is absolute. */
export const path = (placeholder: string): ValueType<string, string> => ({
  ...text(placeholder, "a path"),
  resolve: (value, cwd) => resolve(cwd, value),
});

/** Switch: true if the name is given without a value. */
export const toggle: ValueType<boolean, boolean | "true" | "false"> = {
  placeholder: undefined,
  allowed: "true or false",
  schema: (z) => z.union([z.boolean(), z.literal(["true", "false"]).transform((text) => text === "true")]),
};

export const oneOf = <const W extends string>(placeholder: string, values: readonly W[]): ValueType<W, W> => ({
  placeholder,
  // Not with Intl.ListFormat: loading it costs each command 6 MB.
  allowed: `${values.slice(0, -1).join(", ")} or ${values.at(-1)!}`,
  schema: (z) => z.literal(values),
});

export const onOff: ValueType<boolean, "on" | "off"> = {
  placeholder: "RULE",
  allowed: "on or off",
  schema: (z) => z.literal(["on", "off"]).transform((text) => text === "on"),
};

type NumberType = ValueType<number, number | string>;

/** Returns a schema for numbers, and for text of decimal digits. Rejects "", "010", "0x10" and "1e3". */
const numeric = (z: Zod, number: z.ZodType<number, number>) => {
  const text = z.string().regex(/^(0|[1-9]\d*)(\.\d+)?$/);
  return z.union([number, text.transform(Number).pipe(number)]);
};
const integer = (max: number) => (z: Zod) => numeric(z, z.number().int().min(0).max(max));

/** Returns a type for whole numbers from 0 to 1,000,000,000, far below the limits of timers and counters. */
export const count = (placeholder: string, allowed: string): NumberType => ({
  placeholder,
  allowed,
  schema: integer(1_000_000_000),
});

/** Returns a type for whole numbers from 1 to `max`, or `auto`. */
export const countOrAuto = (placeholder: string, max: number): ValueType<number | "auto", number | string> => ({
  placeholder,
  allowed: `auto or a whole number from 1 to ${max}`,
  schema: (z) => z.union([z.literal("auto"), numeric(z, z.number().int().min(1).max(max))]),
});

/** Returns a type for whole numbers from `min` to 1,000,000,000, or 0. The error message gives the meaning of 0. */
export const countFrom = (placeholder: string, min: number, zeroMeaning: string): NumberType => ({
  placeholder,
  allowed: `a whole number from ${min}, or 0 (${zeroMeaning})`,
  schema: (z) => numeric(z, z.union([z.literal(0), z.number().int().min(min).max(1_000_000_000)])),
});

/** Port number; 0 selects any free port. */
export const port: NumberType = {
  placeholder: "PORT",
  allowed: "a whole number from 0 to 65535 (0 takes any free port)",
  schema: integer(65_535),
};

/** Returns a type for durations that are written in seconds and read in milliseconds. */
export const secondsAsMs = (min: number, max: number): NumberType => ({
  placeholder: "SECONDS",
  allowed: `a number of seconds from ${min} to ${max}`,
  schema: (z) => numeric(z, z.number().min(min).max(max)).transform((seconds) => Math.round(seconds * 1000)),
});

/** URL with http or https, a host, an optional port and no path. The checked value has no trailing slash. */
export const webAddress: ValueType<string, string> = {
  placeholder: "URL",
  allowed: "http:// or https://, a host and a port, without a path",
  schema: addressSchema(["http:", "https:"]),
};

function addressSchema(protocols: readonly string[]) {
  const isAddress = (address: string): boolean => {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    const isPlain = url?.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
    return isPlain && protocols.includes(url.protocol);
  };
  return (z: Zod) =>
    z
      .string()
      .refine(isAddress)
      .transform((address) => address.replace(/\/$/, ""));
}

/** Returns the type `webAddress` with an example in its error message. */
export const webAddressLike = (example: string): ValueType<string, string> => ({
  ...webAddress,
  allowed: `a URL such as ${example}`,
});

export const socketAddressLike = (example: string): ValueType<string, string> => ({
  ...webAddressLike(example),
  schema: addressSchema(["http:", "https:", "ws:", "wss:"]),
});

/**
 * Database: a SQLite file, whose checked path is absolute, or PostgreSQL, with one URL for each server. Several URLs
 * are separated by commas, or a list in the configuration file.
 */
export const databaseUrl: ValueType<string, string | readonly string[]> = {
  placeholder: "URL",
  allowed: "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/NAME, or several of these with commas between them",
  schema: (z) =>
    z.union([
      z.string().regex(/^(sqlite:.+|postgres(ql)?:\/\/[^\s]+)$/),
      z
        .array(z.string().regex(/^postgres(ql)?:\/\/[^\s]+$/))
        .min(1)
        .transform((urls) => urls.join(",")),
    ]),
  resolve: (url, cwd) => url.replace(/^sqlite:(.*)$/s, (_, file: string) => `sqlite:${resolve(cwd, file)}`),
};

/** Returns a type for lists: text with commas, or a list in the configuration file. `items` names the items. */
const listOf = (
  placeholder: string,
  items: string,
  item: (zod: Zod) => z.ZodType<string, string>,
): ValueType<readonly string[], string | readonly string[]> => ({
  placeholder,
  allowed: `a comma-separated list of ${items}`,
  schema: (z) => {
    const text = z.string().transform((entries) =>
      entries
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ""),
    );
    const list = z.array(item(z));
    return z.union([text.pipe(list), list]);
  },
});

export const addressRanges = listOf("CIDRS", "addresses and CIDR ranges", (z) =>
  z.string().refine((entry) => {
    const [address = "", prefix, ...rest] = entry.split("/");
    const family = isIP(address);
    const isPrefixValid =
      prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
    return family !== 0 && isPrefixValid && rest.length === 0;
  }),
);

/** Public keys of notaries, `1:hex` each. */
export const notaryKeys = listOf("KEYS", "keys such as 1:02ab…, 1 (secp256k1) and 66 lower-case hex digits", (z) =>
  z.string().regex(/^1:[0-9a-f]{66}$/),
);

export const hostNames = listOf("NAMES", "host names in lower case", (z) => z.string().regex(/^[a-z0-9.-]{1,253}$/));
