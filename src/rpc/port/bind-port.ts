/** Binding of a port, or of the next free one. */
import { errorMessage } from "../../base/errors/error-message.js";
import { StartError } from "../../base/errors/start-error.js";

/** Requested and bound port of a listener. */
export interface BoundPort {
  readonly requested: number;
  readonly actual: number;
}

/** Limit on the ports tried after the requested one. */
const maxDrift = 100;

/**
 * Binds the requested port, or the next free port if drift is allowed.
 *
 * @throws the system's error: EADDRINUSE if the port is taken and drift is denied or finds no free port.
 */
export async function listenWithDrift(
  listen: (port: number) => Promise<number>,
  requested: number,
  drift: "allow" | "deny",
): Promise<BoundPort> {
  const last = drift === "deny" || requested === 0 ? requested : Math.min(65_535, requested + maxDrift);
  for (let port = requested; ; port++) {
    try {
      return { requested, actual: await listen(port) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port >= last) {
        throw error;
      }
    }
  }
}

/** Listener that is not bound yet. */
interface Listener {
  listen(address: { readonly host: string; readonly port: number }): Promise<number>;
}

/**
 * Binds a listener of the node.
 *
 * @param option name of the option that sets the port, for the error message.
 * @throws StartError
 */
export async function bindPort(
  listener: Listener,
  { host, portDrift }: { readonly host: string; readonly portDrift: "allow" | "deny" },
  port: number,
  option: string,
): Promise<BoundPort> {
  try {
    return await listenWithDrift((candidate) => listener.listen({ host, port: candidate }), port, portDrift);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") {
      const remedy =
        portDrift === "deny" ? `; choose another ${option}, or --port-drift allow` : ", and so are the ports after it";
      throw new StartError(`Port ${port} is taken${remedy}.`);
    }
    throw new StartError(`Port ${port} on ${host} cannot be bound: ${errorMessage(error)}.`);
  }
}
