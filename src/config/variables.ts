/** Access to the environment, and the check for unknown variables with the prefix of the options. */
import { closestMatch } from "leven";
import { ConfigError, variablePrefix } from "./declare.js";
import { configFile, options } from "./options.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Deletes empty variables of options and commands, which count as not set. The parser of flags would use them as values. */
export function deleteEmptyVariables(): void {
  for (const [name, value] of Object.entries(process.env)) {
    if (name.startsWith(variablePrefix) && value === "") {
      Reflect.deleteProperty(process.env, name);
    }
  }
}

/** Returns the environment of the process, without service links. */
export function readEnvironment(): Environment {
  return withoutServiceLinks(process.env);
}

/**
 * Removes the variables that Kubernetes, or Docker with --link, sets for each Service of a namespace. For example, a
 * Service named `gatehouse-rpc` sets `GATEHOUSE_RPC_PORT=tcp://10.0.0.1:53550`, which is not meant as `--rpc-port`.
 */
function withoutServiceLinks(env: Environment): Environment {
  const services = Object.entries(env).flatMap(([name, value = ""]) =>
    name.startsWith(variablePrefix.slice(0, -1)) && name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value)
      ? [name.slice(0, -"_PORT".length)]
      : [],
  );
  const isLink = (name: string): boolean =>
    services.some(
      (service) =>
        name.startsWith(service) &&
        /^_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?|NAME|ENV_.+)$/.test(
          name.slice(service.length),
        ),
    );
  return services.length === 0 ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !isLink(name)));
}

/**
 * Rejects variables that have the prefix of the options but are no option. Throws ConfigError with the most similar
 * variable.
 */
export function rejectUnknownVariables(env: Environment, others: readonly string[] = []): void {
  const all = [configFile, ...options];
  for (const [name, value = ""] of Object.entries(env)) {
    const isKnown = others.includes(name) || all.some((option) => option.env === name);
    if (name.startsWith(variablePrefix) && value !== "" && !isKnown) {
      const candidates = [...all, ...others.map(toCandidate)];
      const suggestion = suggest(toCandidate(name).name, candidates, ({ env }) => env);
      throw new ConfigError(`The environment has the variable ${name}, which is not an option${suggestion}.`);
    }
  }
}

/** Returns a variable with the option name that it would stand for, in which misspellings are searched. */
function toCandidate(env: string) {
  return { env, name: env.slice(variablePrefix.length).toLowerCase().replaceAll("_", "-") };
}

/**
 * Returns the end of an error message, with the option closest to an unknown name; empty if no name is close. At most a
 * quarter of the characters, rounded up, may differ.
 */
export function suggest<O extends { readonly name: string }>(
  unknownName: string,
  options: readonly O[],
  show: (option: O) => string,
): string {
  const names = options.map(({ name }) => name);
  const nearest = closestMatch(unknownName.toLowerCase(), names, { maxDistance: Math.ceil(unknownName.length / 4) });
  const option = options.find(({ name }) => name === nearest);
  return option === undefined ? "" : `; did you mean ${show(option)}`;
}
