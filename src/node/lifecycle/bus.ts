/** Event bus between modules that must not depend on each other. */

/** Publishes events by name to listeners. `Events` maps each name to the type of its event. */
export interface Bus<Events extends object> {
  /** Registers a listener for all later events of this name. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): void;
  /**
   * Calls all listeners in the order of registration before it returns. An error of a listener reaches neither the
   * other listeners nor the caller.
   */
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void;
}

/**
 * Creates a bus without listeners.
 *
 * @param onError called with the error that a listener threw.
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
