/** The environment, of which this is the only reader, and variables that are meant for the node and are none of its options. */
import { ConfigError } from "./config-error.js";
import { variablePrefix } from "./declare.js";
import { configFile, options } from "./options.js";
import { suggest } from "./suggest.js";

/** Variables by their names. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of the process, without what nobody has put there for it. */
export function readEnvironment(): Environment {
  return withoutServiceLinks(process.env);
}

/**
 * The environment without what Kubernetes, or Docker with --link, puts there for each Service of a namespace: one named
 * `gatehouse-rpc` gives `GATEHOUSE_RPC_PORT=tcp://10.0.0.1:53550`, which nobody means as `--rpc-port`.
 */
export function withoutServiceLinks(env: Environment): Environment {
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
 * A variable that begins like those of options is meant to be one.
 *
 * @param others variables that begin like them and belong to others, who read them themselves.
 * @throws ConfigError that says which was most likely meant.
 */
export function refuseUnknownVariables(env: Environment, others: readonly string[] = []): void {
  const all = [configFile, ...options];
  for (const [name, value = ""] of Object.entries(env)) {
    const isKnown = others.includes(name) || all.some((option) => option.env === name);
    if (name.startsWith(variablePrefix) && value !== "" && !isKnown) {
      const named = [...all, ...others.map(toNamed)];
      const meant = suggest(toNamed(name).name, named, (option) => option.env);
      throw new ConfigError(`The environment has the variable ${name}, which is no option${meant}.`);
    }
  }
}

function toNamed(env: string) {
  return { env, name: env.slice(variablePrefix.length).toLowerCase().replaceAll("_", "-") };
}
