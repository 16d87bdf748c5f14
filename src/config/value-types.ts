/** The types of values that options take: how each is checked, and what a wrong one is told. */
import { isIP } from "node:net";
import { resolve } from "node:path";
import type { z } from "zod";

/** What schemas are made with. It is given to them: of those who look at options, few read any value. */
type Zod = typeof z;

/** A type of values: what it is given as, and what comes of that. */
export interface ValueType<T, Given = unknown> {
  /** Placeholder of the value in the help; undefined for a switch, which its name alone turns on. */
  readonly placeholder: string | undefined;
  /** What is allowed, to end the sentence "… must be". */
  readonly allowed: string;
  /** What it makes takes a text (flag, variable, default) or a value of the file, and gives the checked value. */
  readonly schema: (zod: Zod) => z.ZodType<T, Given>;
  /** Makes the value mean the same whatever the working directory; left out where it does anyway. */
  resolve?(value: T, cwd: string): T;
}

/** A text that is not empty. */
export const text = (placeholder: string, allowed: string): ValueType<string, string> => ({
  placeholder,
  allowed,
  schema: (z) => z.string().min(1),
});

/** A path; absolute once it is read. */
export const path = (placeholder: string): ValueType<string, string> => ({
  ...text(placeholder, "a path"),
  resolve: (value, cwd) => resolve(cwd, value),
});

/** On by its name alone. */
export const toggle: ValueType<boolean, boolean | "true" | "false"> = {
  placeholder: undefined,
  allowed: "true or false",
  schema: (z) => z.union([z.boolean(), z.literal(["true", "false"]).transform((word) => word === "true")]),
};

/** One of some words. */
export const oneOf = <const W extends string>(placeholder: string, words: readonly W[]): ValueType<W, W> => ({
  placeholder,
  // Not by Intl, which costs each command 6 MB.
  allowed: `${words.slice(0, -1).join(", ")} or ${words.at(-1)!}`,
  schema: (z) => z.literal(words),
});

/** The words on and off. */
export const onOff: ValueType<boolean, "on" | "off"> = {
  placeholder: "RULE",
  allowed: "on or off",
  schema: (z) => z.literal(["on", "off"]).transform((word) => word === "on"),
};

/** In texts, numbers are written in digits: "", "0x10" and "1e3" are none. */
const numeric = (z: Zod, number: z.ZodType<number, number>) =>
  z.union([
    number,
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number)
      .pipe(number),
  ]);
const wholeNumber = (most: number) => (z: Zod) => numeric(z, z.number().int().min(0).max(most));

/** A whole number from 0 that stays far below what timers and counters can hold. */
export const count = (placeholder: string, allowed: string): ValueType<number, number | string> => ({
  placeholder,
  allowed,
  schema: wholeNumber(1_000_000_000),
});

/** A whole number from 1 on, or as many as fit. */
export const countOrAuto = (placeholder: string, most: number): ValueType<number | "auto", number | string> => ({
  placeholder,
  allowed: `auto or a whole number from 1 to ${most}`,
  schema: (z) => z.union([z.literal("auto"), numeric(z, z.number().int().min(1).max(most))]),
});

/** Nothing, by 0, or a whole number that is not too small. */
export const countFrom = (placeholder: string, least: number, nothing: string): ValueType<number, number | string> => ({
  placeholder,
  allowed: `a whole number from ${least}, or 0 (${nothing})`,
  schema: (z) => numeric(z, z.union([z.literal(0), z.number().int().min(least).max(1_000_000_000)])),
});

/** A port, of which 0 takes any free one. */
export const port: ValueType<number, number | string> = {
  placeholder: "PORT",
  allowed: "a whole number from 0 to 65535 (0 takes any free port)",
  schema: wholeNumber(65_535),
};

/** A span of time that is given in seconds and read in milliseconds. */
export const secondsAsMs = (least: number, most: number): ValueType<number, number | string> => ({
  placeholder: "SECONDS",
  allowed: `a number of seconds from ${least} to ${most}`,
  schema: (z) => numeric(z, z.number().min(least).max(most)).transform((seconds) => Math.round(seconds * 1000)),
});

/** http:// or https://, a host and a port, and nothing else; without a slash at its end once it is read. */
export const webAddress: ValueType<string, string> = {
  placeholder: "URL",
  allowed: "http:// or https://, a host and a port, without a path",
  schema: addressSchema(["http:", "https:"]),
};

function addressSchema(protocols: readonly string[]) {
  return (z: Zod) =>
    z
      .string()
      .refine((address) => {
        const url = URL.canParse(address) ? new URL(address) : undefined;
        const isPlain = url?.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
        return isPlain && protocols.includes(url.protocol);
      })
      .transform((address) => address.replace(/\/$/, ""));
}

/** The same, where an example says enough. */
export const webAddressLike = (example: string): ValueType<string, string> => ({
  ...webAddress,
  allowed: `a URL such as ${example}`,
});

/** The same, of WebSockets too. */
export const socketAddressLike = (example: string): ValueType<string, string> => ({
  ...webAddressLike(example),
  schema: addressSchema(["http:", "https:", "ws:", "wss:"]),
});

/**
 * A database: a file of SQLite, whose path is absolute once it is read, or PostgreSQL, by the URL of each of its servers.
 * Several are one text with commas between them; in a file they may be a list.
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

/** A list: in a text separated by commas, in a file also a list as such. */
const listOf = (
  placeholder: string,
  what: string,
  item: (zod: Zod) => z.ZodType<string, string>,
): ValueType<readonly string[], string | readonly string[]> => ({
  placeholder,
  allowed: `a comma-separated list of ${what}`,
  schema: (z) =>
    z.union([
      z
        .string()
        .transform((entries) =>
          entries
            .split(",")
            .map((entry) => entry.trim())
            .filter((entry) => entry !== ""),
        )
        .pipe(z.array(item(z))),
      z.array(item(z)),
    ]),
});

/** Addresses and ranges of addresses, of IPv4 and IPv6. */
export const addressRanges = listOf("CIDRS", "addresses and CIDR ranges", (z) =>
  z.string().refine((entry) => {
    const [address = "", prefix, ...rest] = entry.split("/");
    const family = isIP(address);
    const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
    return family !== 0 && fits && rest.length === 0;
  }),
);

/** Public keys of notaries, `1:hex` each. */
export const notaryKeys = listOf("KEYS", "keys such as 1:02ab…, 1 (secp256k1) and 66 lower-case hex digits", (z) =>
  z.string().regex(/^1:[0-9a-f]{66}$/),
);

/** Names of hosts, as certificates have them. */
export const hostNames = listOf("NAMES", "host names in lower case", (z) => z.string().regex(/^[a-z0-9.-]{1,253}$/));
