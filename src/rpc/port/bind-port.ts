/** Binds a port, or the next free one. */
import { errorMessage } from "../../base/errors/error-message.js";
import { StartError } from "../../base/errors/start-error.js";

/** What a listener got. */
export interface BoundPort {
  readonly requested: number;
  readonly actual: number;
}

/** Most ports that are tried after the requested one. */
const maxDrift = 100;

/**
 * Binds the requested port; when it is taken and drift is allowed, the next free one after it.
 *
 * @throws the system's error: EADDRINUSE when the port is taken and drift is denied or found nothing.
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

/** A listener that is not bound yet. */
interface Listener {
  listen(address: { readonly host: string; readonly port: number }): Promise<number>;
}

/**
 * Binds a listener of the node.
 *
 * @param option the option that chose the port, for the sentence that says what to do.
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
