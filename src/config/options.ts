/**
 * Options of a node, each declared once under the name of its field in `Config`. The declarations define:
 *
 * - the flags and their help
 * - the environment variables
 * - the keys of the configuration file and its JSON Schema
 * - the type `Config`
 * - the table in docs/options.md (`npm run docs`)
 */
import { logLevels } from "../base/logging/log-levels.js";
import { declareOptions, type Option } from "./declare.js";
import {
  addressRanges,
  count,
  countFrom,
  countOrAuto,
  databaseUrl,
  hostNames,
  notaryKeys,
  oneOf,
  onOff,
  path,
  port,
  secondsAsMs,
  socketAddressLike,
  text,
  toggle,
  webAddress,
  webAddressLike,
} from "./value-types.js";

export const optionsByKey = declareOptions({
  dataDir: { type: path("DIR"), fallback: "data", description: "Directory of the node's key and database." },
  host: {
    type: text("ADDRESS", "an IP address or a host name"),
    fallback: "::",
    description: "Address to listen on; :: is every address, IPv4 too.",
  },
  rpcPort: { type: port, fallback: "53550", description: "Port of HTTP and gRPC for all clients." },
  omniPort: { type: port, fallback: "53551", description: "Port of gRPC between nodes." },
  metricsEnabled: { type: toggle, fallback: "false", description: "Serve metrics for Prometheus on --metrics-port." },
  otlpEndpoint: {
    // Standard variable of OpenTelemetry.
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    type: webAddress,
    description:
      "URL of an OpenTelemetry collector (OTLP over HTTP), which gets a trace of each request. Default: no traces.",
  },
  mcpEnabled: { type: toggle, fallback: "false", description: "Serve tools for AI assistants (MCP) on --mcp-port." },
  metricsPort: { type: port, fallback: "53590", description: "Port of the metrics." },
  mcpPort: { type: port, fallback: "3001", description: "Port of the MCP server." },
  publicUrl: {
    type: webAddress,
    description: "Address at which others reach the RPC port. Default: built from --host and --rpc-port.",
  },
  genesisFile: {
    name: "genesis",
    type: path("FILE"),
    description:
      "Genesis file (JSON). A node that starts without one belongs to no network, and is dormant. Must not change once it is stored. Default: genesis.json in the data directory.",
  },
  peersFile: {
    name: "peers",
    type: path("FILE"),
    description:
      "Peers file (JSON). A node without peers is dormant until one is added or completes a handshake. Default: peers.json in the data directory.",
  },
  omniUrl: {
    type: webAddress,
    description: "Address at which nodes reach this one. Default: built from --public-url or --host, and --omni-port.",
  },
  omniTls: {
    type: onOff,
    fallback: "on",
    description:
      "Mutual TLS between nodes. All nodes of a network must use the same value. Use off only if a proxy in front of the port provides mutual TLS.",
  },
  followers: {
    type: oneOf("WHO", ["open", "listed"]),
    description:
      "Nodes that get full blocks, including private programs. open: every node. listed: those that the genesis or the operator names. Default: listed if the genesis has followers, otherwise open.",
  },
  allowPrivatePeers: {
    type: toggle,
    fallback: "false",
    description: "Allow peers at loopback and private addresses, for networks on one machine or site.",
  },
  tlsCertFile: {
    name: "tls-cert",
    type: path("FILE"),
    description:
      "Certificate chain (PEM) of the RPC port, which then serves HTTPS and gRPC over TLS. Reloaded when the file changes, and on SIGHUP.",
  },
  tlsKeyFile: {
    name: "tls-key",
    type: path("FILE"),
    description: "Private key (PEM) of --tls-cert. Reloaded with it.",
  },
  controlSocket: {
    type: path("PATH"),
    fallback: "<data-dir>/control.sock",
    description: "Unix socket of the control service.",
  },
  controlPort: {
    type: port,
    description:
      "Port of the control service on 127.0.0.1, for clients that have the token in <data-dir>/control.token. Default: none.",
  },
  databaseUrl: {
    name: "database",
    type: databaseUrl,
    fallback: "sqlite:<data-dir>/gatehouse.sqlite",
    description:
      "Database: a SQLite file, or PostgreSQL. Given several servers, the node finds the primary, also after a failover.",
  },
  role: {
    type: oneOf("ROLE", ["writer", "reader", "standby"]),
    fallback: "writer",
    description:
      "writer: applies blocks. reader: read-only, on a database that another node writes. standby: a reader that takes over when the writer is gone.",
  },
  workers: {
    type: countOrAuto("N", 64),
    fallback: "1",
    description:
      "Processes that serve the RPC port; auto starts one for each processor. 1: the node's own process. From 2: that many workers, in addition to the node's own process.",
  },
  edge: {
    type: oneOf("KIND", ["compiled", "express"]),
    fallback: "compiled",
    description:
      "First handler of HTTP/1.1. compiled: compiled routes, which are faster and pass other requests to the Express application. express: that application alone, whose routes tracers and loggers can name. Responses are identical.",
  },
  recover: {
    type: toggle,
    fallback: "false",
    description:
      "Confirm that no newer block exists anywhere, and produce blocks without confirmation by a peer. If one exists, the chain forks. Also resolves evidence of forks, and takes over a database that belongs to another key.",
  },
  sync: {
    type: oneOf("HOW", ["auto", "snapshot", "blocks"]),
    fallback: "auto",
    description:
      "Source of the state for a node without blocks. snapshot: snapshots of its peers. blocks: all blocks, which it applies. auto: the faster one.",
  },
  snapshotEvery: {
    type: count("BLOCKS", "a whole number from 0 (none)"),
    fallback: "1000",
    description:
      "Number of blocks between snapshots of the state, which let new nodes join. The node retains the latest two; 0 disables snapshots.",
  },
  retainBlocks: {
    type: countFrom("BLOCKS", 256, "all"),
    fallback: "0",
    description:
      "Number of latest blocks whose transactions are retained. Of older blocks, only the headers are. 0 retains all.",
  },
  trustedProxies: {
    type: addressRanges,
    fallback: "",
    description: "Proxies whose X-Forwarded-For header, or else Forwarded, is trusted. Default: none.",
  },
  identityMode: {
    type: oneOf("MODE", ["signed", "trusted-header"]),
    fallback: "signed",
    description:
      "Proof of a caller's identity. signed: a signature. trusted-header: a header of a gateway that authenticates callers.",
  },
  identityForm: {
    type: oneOf("FORM", ["any", "network"]),
    fallback: "any",
    description: "Signed identities to accept. any: all. network: only those that name this network.",
  },
  rateLimitPerMinute: {
    name: "rate-limit",
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "2000",
    description: "Requests per minute from one address; 0 disables the limit.",
  },
  rateLimitExempt: {
    type: addressRanges,
    fallback: "127.0.0.0/8,::1/128",
    description: "Addresses exempt from --rate-limit. No quota or rate applies to their transactions either.",
  },
  senderBytesPerMinute: {
    type: count("BYTES", "a whole number from 0 (no limit)"),
    fallback: "8388608",
    description: "Bytes of transactions per minute from one sender, and from one address; 0 disables the limit.",
  },
  senderProgramsPerMinute: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "60",
    description: "New programs per minute from one sender, and from one address; 0 disables the limit.",
  },
  senderLeavesPerMinute: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "60",
    description:
      "New commitments per minute from one sender, and from one address; 0 disables the limit. At 100, one sender fills the tree in a week.",
  },
  writers: {
    type: oneOf("RULE", ["open", "listed"]),
    fallback: "open",
    description:
      "Senders whose transactions are accepted. open: all. listed: keys in the genesis and in --writers-file.",
  },
  writersFile: {
    type: path("FILE"),
    description: "File (JSON) of keys that may write with --writers listed, in addition to those in the genesis.",
  },
  connectionsPerAddress: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "256",
    description: "Concurrent connections from one address, other than --trusted-proxies; 0 disables the limit.",
  },
  streamsPerAddress: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "100",
    description: "Concurrent streams, such as WatchHealth, from one address; 0 disables the limit.",
  },
  idleTimeoutMs: {
    name: "idle-timeout",
    type: secondsAsMs(1, 86_400),
    fallback: "60",
    description:
      "Seconds without a request after which an HTTP/1.1 connection is closed; HTTP/2 connections stay for at least 600. Set more than the idle time of a load balancer in front.",
  },
  shutdownDelayMs: {
    name: "shutdown-delay",
    type: secondsAsMs(0, 3_600),
    fallback: "0",
    description:
      "Seconds between SIGTERM and the shutdown, during which the node is not ready but serves all requests. Set more than a load balancer takes to notice.",
  },
  memoryMib: {
    name: "memory",
    type: count("MIB", "a whole number of MiB from 0 (all memory)"),
    fallback: "0",
    description:
      "Memory in MiB that sizes the node's caches, limits on request and response bytes, and threads. 0 uses the memory of the container or machine.",
  },
  portDrift: {
    type: oneOf("RULE", ["allow", "deny"]),
    fallback: "allow",
    description: "If a port is taken, allow uses the next free one, and deny stops the start.",
  },
  loopIntervalMs: {
    name: "loop-interval",
    type: secondsAsMs(0.05, 3_600),
    fallback: "5",
    description: "Seconds between two ticks of the main loop.",
  },
  logLevel: { type: oneOf("LEVEL", logLevels), fallback: "info", description: "Log level; the log goes to stderr." },
  json: { type: toggle, fallback: "false", description: "Print the ready line (stdout) and the log (stderr) as JSON." },
  tlsnotaryEnabled: {
    // The specification defines this variable.
    env: "TLSNOTARY_ENABLED",
    type: toggle,
    fallback: "false",
    description: "Serve the attestation routes.",
  },
  notaryKeys: {
    type: notaryKeys,
    fallback: "",
    description: "Notaries whose attestations are trusted. Default: none, so that no attestation verifies.",
  },
  attestationMaxAgeS: {
    name: "attestation-max-age",
    type: count("SECONDS", "a whole number of seconds from 0 (any age)"),
    fallback: "0",
    description: "Maximum age of an attested connection; 0 allows any.",
  },
  attestationServers: {
    type: hostNames,
    fallback: "",
    description: "Servers whose attestations are accepted. Default: any.",
  },
  notaryUrl: {
    type: webAddressLike("http://127.0.0.1:7047"),
    description: "Your own notary server, which the node monitors and lists.",
  },
  notaryPublicUrl: {
    type: socketAddressLike("wss://notary.example.org:7047"),
    description: "Address at which clients reach that notary. Default: none, and clients see no address.",
  },
  notaryProxyUrl: {
    type: socketAddressLike("wss://notary.example.org:55688"),
    description: "WebSocket proxy through which browsers reach servers, listed with the notary.",
  },
});

/** Options as a list, in help order. */
export const options: readonly Option[] = Object.values(optionsByKey);

/** Option for the configuration file. It is a flag and a variable, but no key of the file itself. */
export const { config: configFile } = declareOptions({
  config: { type: path("FILE"), description: "Configuration file (YAML or JSON)." },
});
