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

/** Options of `gatehouse start` by field name. */
export const optionsByKey = declareOptions({
  dataDir: { type: path("DIR"), fallback: "data", description: "Directory of the node's key and database." },
  host: {
    type: text("ADDRESS", "an IP address or a host name"),
    fallback: "::",
    description: "Address to listen on; :: is every address, IPv4 too.",
  },
  rpcPort: { type: port, fallback: "53550", description: "Port of HTTP and gRPC for all clients." },
  omniPort: { type: port, fallback: "53551", description: "Port of gRPC between nodes." },
  metricsEnabled: {
    type: toggle,
    fallback: "false",
    description: "Serves metrics for Prometheus on --metrics-port.",
  },
  otlpEndpoint: {
    // Standard variable of OpenTelemetry.
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    type: webAddress,
    description: "Collector that gets a trace of each request (OpenTelemetry, OTLP over HTTP); none when not given.",
  },
  mcpEnabled: { type: toggle, fallback: "false", description: "Serves tools for assistants (MCP) on --mcp-port." },
  metricsPort: { type: port, fallback: "9090", description: "Port of the metrics." },
  mcpPort: { type: port, fallback: "3001", description: "Port of the MCP server." },
  publicUrl: {
    type: webAddress,
    description: "Address at which peers reach the node; made from host and port when not given.",
  },
  genesisFile: {
    name: "genesis",
    type: path("FILE"),
    description:
      "Genesis file (JSON); needed at the first start, must not change afterwards. genesis.json of the data directory when not given.",
  },
  peersFile: {
    name: "peers",
    type: path("FILE"),
    description:
      "Peers file (JSON); a node that knows no peers is dormant until one is added or shakes hands. peers.json of the data directory when not given.",
  },
  omniUrl: {
    type: webAddress,
    description:
      "Address at which nodes reach this one; made from --public-url or the host and --omni-port when not given.",
  },
  omniTls: {
    type: onOff,
    fallback: "on",
    description:
      "Mutual TLS between nodes; all nodes of a network must have the same, off only behind something that does it.",
  },
  followers: {
    type: oneOf("WHO", ["open", "listed"]),
    description:
      "Nodes that get whole blocks, private programs in them too: every node, or those that the genesis or the operator names; listed when not given where the genesis has followers, open otherwise.",
  },
  allowPrivatePeers: {
    type: toggle,
    fallback: "false",
    description: "Lets peers name loopback and private addresses, for networks on one machine or site.",
  },
  tlsCertFile: {
    name: "tls-cert",
    type: path("FILE"),
    description:
      "Certificate chain (PEM) of the RPC port, which then speaks HTTPS and gRPC over TLS; read again when it changes, and on SIGHUP.",
  },
  tlsKeyFile: {
    name: "tls-key",
    type: path("FILE"),
    description: "Private key (PEM) of --tls-cert; read again with it.",
  },
  controlSocket: {
    type: path("PATH"),
    fallback: "<data-dir>/control.sock",
    description: "Unix socket of the control service.",
  },
  controlPort: {
    type: port,
    description:
      "Port on 127.0.0.1 of the control service, for those who hold <data-dir>/control.token; none when not given.",
  },
  databaseUrl: {
    name: "database",
    type: databaseUrl,
    fallback: "sqlite:<data-dir>/gatehouse.sqlite",
    description:
      "Database: a file of SQLite, or PostgreSQL; of several servers the primary is found, also when it changes.",
  },
  role: {
    type: oneOf("ROLE", ["writer", "reader", "standby"]),
    fallback: "writer",
    description:
      "A reader serves reads of a database that another node writes, and applies nothing; a standby does so until that node is gone, and then writes.",
  },
  workers: {
    type: countOrAuto("N", 64),
    fallback: "1",
    description:
      "Processes that serve the RPC port; auto takes one for each processor. 1 serves it in the node's own process; from 2 on there are so many beside that.",
  },
  edge: {
    type: oneOf("KIND", ["compiled", "express"]),
    fallback: "compiled",
    description:
      "What answers HTTP/1.1 first: compiled routes, which are faster and hand what they do not know to the application of Express; or that application alone, of which tracers and loggers know the routes. The answers are the same.",
  },
  recover: {
    type: toggle,
    fallback: "false",
    description:
      "The operator's word that no newer block exists anywhere than those in the database: blocks are made without hearing from a peer first, and evidence of two blocks of one number is taken as dealt with. A database that belongs to another key is taken over.",
  },
  sync: {
    type: oneOf("HOW", ["auto", "snapshot", "blocks"]),
    fallback: "auto",
    description:
      "How a node without blocks gets the state: from a snapshot of its peers, by applying all blocks, or whichever is faster.",
  },
  snapshotEvery: {
    type: count("BLOCKS", "a whole number from 0 (none)"),
    fallback: "1000",
    description:
      "Makes a snapshot of the state after each so many blocks, for nodes that join; the newest two are kept.",
  },
  retainBlocks: {
    type: countFrom("BLOCKS", 256, "all"),
    fallback: "0",
    description:
      "Keeps the transactions of so many newest blocks and removes older ones, of which the headers stay; all when 0.",
  },
  trustedProxies: {
    type: addressRanges,
    fallback: "",
    description: "Proxies whose X-Forwarded-For and Forwarded headers are believed.",
  },
  identityMode: {
    type: oneOf("MODE", ["signed", "trusted-header"]),
    fallback: "signed",
    description: "How callers prove their identity: by signature, or by a gateway that has authenticated them.",
  },
  identityForm: {
    type: oneOf("FORM", ["any", "network"]),
    fallback: "any",
    description: "Which signed identities are taken: any, or only those that name this network.",
  },
  rateLimitPerMinute: {
    name: "rate-limit",
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "2000",
    description: "Requests a minute for one address.",
  },
  rateLimitExempt: {
    type: addressRanges,
    fallback: "127.0.0.0/8,::1/128",
    description: "Addresses that are not counted, whose transactions no share or rate holds for.",
  },
  senderBytesPerMinute: {
    type: count("BYTES", "a whole number from 0 (no limit)"),
    fallback: "8388608",
    description: "Bytes of transactions a minute of one sender, and of one address.",
  },
  senderProgramsPerMinute: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "60",
    description: "New programs a minute of one sender, and of one address.",
  },
  senderLeavesPerMinute: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "60",
    description: "New commitments a minute of one sender, and of one address; at 100 one fills the tree in a week.",
  },
  writers: {
    type: oneOf("RULE", ["open", "listed"]),
    fallback: "open",
    description: "Whose transactions are taken: anybody's, or those of keys in the genesis and in --writers-file.",
  },
  writersFile: {
    type: path("FILE"),
    description: "Keys that may write with --writers listed, beside those in the genesis (JSON).",
  },
  connectionsPerAddress: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "256",
    description: "Connections of one address at a time; those of --trusted-proxies are not counted.",
  },
  streamsPerAddress: {
    type: count("NUMBER", "a whole number from 0 (no limit)"),
    fallback: "100",
    description: "Streams, such as WatchHealth, that one address has open at a time.",
  },
  memoryMib: {
    name: "memory",
    type: count("MIB", "a whole number of MiB from 0 (what there is)"),
    fallback: "0",
    description:
      "Memory of the node, by which its caches, the bytes of requests and answers, and its threads are bounded; what its container or machine has when 0.",
  },
  portDrift: {
    type: oneOf("RULE", ["allow", "deny"]),
    fallback: "allow",
    description: "Whether a node whose port is taken uses the next free one.",
  },
  loopIntervalMs: {
    name: "loop-interval",
    type: secondsAsMs(0.05, 3_600),
    fallback: "5",
    description: "Time between two ticks of the main loop.",
  },
  logLevel: { type: oneOf("LEVEL", logLevels), fallback: "info", description: "How much to log, to stderr." },
  json: {
    type: toggle,
    fallback: "false",
    description: "Output for machines: the ready line on stdout, the log, both as JSON.",
  },
  tlsnotaryEnabled: {
    // The specification defines this variable.
    env: "TLSNOTARY_ENABLED",
    type: toggle,
    fallback: "false",
    description: "Mounts the attestation routes.",
  },
  notaryKeys: {
    type: notaryKeys,
    fallback: "",
    description: "Notaries whose attestations are believed; none verifies without.",
  },
  attestationMaxAgeS: {
    name: "attestation-max-age",
    type: count("SECONDS", "a whole number of seconds from 0 (any age)"),
    fallback: "0",
    description: "Oldest connection that an attestation may be of.",
  },
  attestationServers: {
    type: hostNames,
    fallback: "",
    description: "Servers that an attestation may be of; any when empty.",
  },
  notaryUrl: {
    type: webAddressLike("http://127.0.0.1:7047"),
    description: "A notary server of one's own, to be watched and shown.",
  },
  notaryPublicUrl: {
    type: socketAddressLike("wss://notary.example.org:7047"),
    description: "Where clients reach that notary; nobody is told when left out.",
  },
  notaryProxyUrl: {
    type: socketAddressLike("wss://notary.example.org:55688"),
    description: "The WebSocket proxy that browsers reach servers by, to be shown beside the notary.",
  },
});

/** Options as a list, in help order. */
export const options: readonly Option[] = Object.values(optionsByKey);

/** Option for the configuration file. It is a flag and a variable, but no key of the file itself. */
export const { config: configFile } = declareOptions({
  config: { type: path("FILE"), description: "Configuration file (YAML or JSON)." },
});
