/** A bus: parts that must not know each other tell what happened, and hear of it. */

/** Tells and hears of events by name; `Events` maps each name to what is told with it. */
export interface Bus<Events extends object> {
  /** Hears of every event of this name from now on. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): void;
  /** Tells all who listen, in their order, before it returns. What one of them throws reaches neither the others nor the teller. */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void;
}

/**
 * A bus that nobody listens to yet.
 *
 * @param onError hears what a listener threw.
 */
export function createBus<Events extends object>(onError: (name: keyof Events, error: unknown) => void): Bus<Events> {
  const listeners: { [Name in keyof Events]?: ((event: Events[Name]) => void)[] } = {};
  return {
    on(name, listener) {
      (listeners[name] ??= []).push(listener);
    },
    emit(name, event) {
      for (const listener of listeners[name] ?? []) {
        try {
          listener(event);
        } catch (error) {
          onError(name, error);
        }
      }
    },
  };
}
