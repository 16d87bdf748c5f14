/** URL at which a program on the same machine reaches the public port of a node. */
import type { Config } from "./config.js";

/** Returns the URL of the public port for this machine: loopback if the node listens on every address. */
export function localUrl({
  host,
  rpcPort,
  tlsCertFile,
}: Pick<Config, "host" | "tlsCertFile"> & { readonly rpcPort: number | string }): string {
  const isEvery = host === "::" || host === "0.0.0.0" || host === "";
  const name = isEvery ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `${tlsCertFile === undefined ? "http" : "https"}://${name}:${rpcPort}`;
}
