import type { EventEmitter } from "node:events";

/** Listeners for the end of a response. Attaches a single listener to the emitter, however many are added. */
export class CloseListeners {
  private listeners: (() => void)[] | undefined;

  constructor(private readonly emitter: EventEmitter & { readonly closed: boolean }) {}

  /** Calls the listener on close, or immediately if already closed. */
  add(listener: () => void): void {
    if (this.emitter.closed) {
      listener();
    } else if (this.listeners === undefined) {
      const listeners = [listener];
      this.listeners = listeners;
      this.emitter.on("close", () => listeners.forEach((call) => call()));
    } else {
      this.listeners.push(listener);
    }
  }
}
