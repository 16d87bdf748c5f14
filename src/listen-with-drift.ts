/** Binds a port, or the next free one. */

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
