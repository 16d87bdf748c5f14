/** The options of a node: one list, from which come the flags, the environment variables, the file keys and the help. */
import { isIP } from "node:net";
import { z } from "zod";
import { logLevels } from "../base/log.js";

/** One option. */
export interface Option {
  /** Name as a flag without its dashes, and as a key of the configuration file. */
  readonly name: string;
  /** Environment variable. */
  readonly env: string;
  /** Placeholder of the value in the help; undefined for a switch. */
  readonly value: string | undefined;
  readonly description: string;
  /** What is allowed, to end the sentence "… must be". */
  readonly allowed: string;
  /** The value when it is not given, as a flag would give it; undefined when there is none. */
  readonly fallback: string | undefined;
  /** Takes a text (flag, environment) or a value of the file, and gives the checked value. */
  readonly schema: z.ZodType;
}

const text = z.string().min(1);

/** Whole numbers and numbers are written in digits: "", "0x10" and "1e3" are none. */
const digits = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .transform(Number),
]);
const wholeNumber = (most: number) => digits.pipe(z.number().int().min(0).max(most));

const range = z.string().refine((entry) => {
  const [address = "", prefix, ...rest] = entry.split("/");
  const family = isIP(address);
  const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
  return family !== 0 && fits && rest.length === 0;
});

const list = (item: z.ZodType<string, string>) =>
  z
    .union([
      z.string().transform((entries) =>
        entries
          .split(",")
          .map((entry) => entry.trim())
          .filter((entry) => entry !== ""),
      ),
      z.array(z.string()),
    ])
    .pipe(z.array(item));

const flag = z.union([z.boolean(), z.literal(["true", "false"]).transform((word) => word === "true")]);

const webAddress = z
  .string()
  .refine((address) => {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    const isPlain = url?.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
    return isPlain && (url.protocol === "http:" || url.protocol === "https:");
  })
  .transform((address) => address.replace(/\/$/, ""));

const define = (
  name: string,
  value: string | undefined,
  fallback: string | undefined,
  schema: z.ZodType,
  allowed: string,
  description: string,
): Option => ({
  name,
  env: `GATEHOUSE_${name.toUpperCase().replaceAll("-", "_")}`,
  value,
  fallback,
  schema,
  allowed,
  description,
});

const portAllowed = "a whole number from 0 to 65535 (0 takes any free port)";
const portSchema = wholeNumber(65_535);

/** Every option of `gatehouse start`. */
export const options = [
  define("data-dir", "DIR", "data", text, "a path", "Directory of the node's key and database."),
  define(
    "host",
    "ADDRESS",
    "::",
    text,
    "an IP address or a host name",
    "Address to listen on; :: is every address, IPv4 too.",
  ),
  define("rpc-port", "PORT", "53550", portSchema, portAllowed, "Port of HTTP and gRPC for everybody."),
  define("omni-port", "PORT", "53551", portSchema, portAllowed, "Port of gRPC between nodes."),
  define(
    "metrics-enabled",
    undefined,
    "false",
    flag,
    "true or false",
    "Serves metrics for Prometheus on --metrics-port.",
  ),
  {
    ...define(
      "otlp-endpoint",
      "URL",
      undefined,
      webAddress,
      "http:// or https://, a host and a port, without a path",
      "Collector that gets a trace of each request (OpenTelemetry, OTLP over HTTP); none when not given.",
    ),
    // The name that OpenTelemetry itself has for it.
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
  },
  define("mcp-enabled", undefined, "false", flag, "true or false", "Serves tools for assistants (MCP) on --mcp-port."),
  define("metrics-port", "PORT", "9090", portSchema, portAllowed, "Port of the metrics."),
  define("mcp-port", "PORT", "3001", portSchema, portAllowed, "Port of the MCP server."),
  define(
    "public-url",
    "URL",
    undefined,
    webAddress,
    "http:// or https://, a host and a port, without a path",
    "Address at which peers reach the node; made from host and port when not given.",
  ),
  define(
    "genesis",
    "FILE",
    undefined,
    text,
    "a path",
    "Genesis file (JSON); needed at the first start, must not change afterwards.",
  ),
  define(
    "peers",
    "FILE",
    undefined,
    text,
    "a path",
    "Peers file (JSON); a node that knows no peers is dormant until one is added or says hello.",
  ),
  define(
    "omni-url",
    "URL",
    undefined,
    webAddress,
    "http:// or https://, a host and a port, without a path",
    "Address at which nodes reach this one; made from --public-url or the host and --omni-port when not given.",
  ),
  define(
    "omni-tls",
    "RULE",
    "on",
    z.literal(["on", "off"]),
    "on or off",
    "Mutual TLS between nodes; all nodes of a network must have the same, off only behind something that does it.",
  ),
  define(
    "allow-private-peers",
    undefined,
    "false",
    flag,
    "true or false",
    "Lets peers name loopback and private addresses, for networks on one machine or site.",
  ),
  define(
    "tls-cert",
    "FILE",
    undefined,
    text,
    "a path",
    "Certificate chain (PEM) of the RPC port, which then speaks HTTPS and gRPC over TLS.",
  ),
  define("tls-key", "FILE", undefined, text, "a path", "Private key (PEM) of --tls-cert."),
  define(
    "control-socket",
    "PATH",
    undefined,
    text,
    "a path",
    "Unix socket of the control service; <data-dir>/control.sock when not given.",
  ),
  define(
    "control-port",
    "PORT",
    undefined,
    portSchema,
    portAllowed,
    "Port on 127.0.0.1 of the control service, for those who hold <data-dir>/control.token; none when not given.",
  ),
  define(
    "database",
    "URL",
    undefined,
    z.string().regex(/^(sqlite:.+|postgres(ql)?:\/\/[^\s]+)$/),
    "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/NAME",
    "Database; sqlite:<data-dir>/gatehouse.sqlite when not given.",
  ),
  define(
    "role",
    "ROLE",
    "writer",
    z.literal(["writer", "reader"]),
    "writer or reader",
    "A reader serves reads of a database that another node writes, and applies nothing.",
  ),
  define(
    "trusted-proxies",
    "CIDRS",
    "",
    list(range),
    "a comma-separated list of addresses and CIDR ranges",
    "Proxies whose X-Forwarded-For and Forwarded headers are believed.",
  ),
  define(
    "identity-mode",
    "MODE",
    "signed",
    z.literal(["signed", "trusted-header"]),
    "signed or trusted-header",
    "How callers prove their identity: by signature, or by a gateway that has authenticated them.",
  ),
  define(
    "rate-limit",
    "NUMBER",
    "2000",
    wholeNumber(1_000_000_000),
    "a whole number from 0 (no limit)",
    "Requests a minute for one address.",
  ),
  define(
    "rate-limit-exempt",
    "CIDRS",
    "127.0.0.0/8,::1/128",
    list(range),
    "a comma-separated list of addresses and CIDR ranges",
    "Addresses that are not counted.",
  ),
  define(
    "port-drift",
    "RULE",
    "allow",
    z.literal(["allow", "deny"]),
    "allow or deny",
    "Whether a node whose port is taken uses the next free one.",
  ),
  define(
    "loop-interval",
    "SECONDS",
    "5",
    digits.pipe(z.number().min(0.05).max(3_600)),
    "a number of seconds from 0.05 to 3600",
    "Time between two ticks of the main loop.",
  ),
  define("log-level", "LEVEL", "info", z.literal([...logLevels]), logLevels.join(", "), "How much to log, to stderr."),
  define(
    "json",
    undefined,
    "false",
    flag,
    "true or false",
    "Output for machines: the ready line on stdout, the log, both as JSON.",
  ),
  {
    ...define("tlsnotary-enabled", undefined, "false", flag, "true or false", "Mounts the attestation routes."),
    // The specification names this variable.
    env: "TLSNOTARY_ENABLED",
  },
  define(
    "notary-keys",
    "KEYS",
    "",
    list(z.string().regex(/^1:[0-9a-f]{66}$/)),
    "a comma-separated list of keys such as 1:02ab…, 1 (secp256k1) and 66 lower-case hex digits",
    "Notaries whose attestations are believed; none verifies without.",
  ),
  define(
    "attestation-max-age",
    "SECONDS",
    "0",
    wholeNumber(1_000_000_000),
    "a whole number of seconds from 0 (any age)",
    "Oldest connection that an attestation may be of.",
  ),
  define(
    "attestation-servers",
    "NAMES",
    "",
    list(z.string().regex(/^[a-z0-9.-]{1,253}$/)),
    "a comma-separated list of host names in lower case",
    "Servers that an attestation may be of; any when empty.",
  ),
  define(
    "notary-url",
    "URL",
    undefined,
    webAddress,
    "a URL such as http://127.0.0.1:7047",
    "A notary server of one's own, to be watched and shown.",
  ),
] as const satisfies readonly Option[];
