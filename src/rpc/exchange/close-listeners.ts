import type { EventEmitter } from "node:events";

/** Who wants to hear that an answer is out: one listener of its emitter, however many there are. */
export class CloseListeners {
  private listeners: (() => void)[] | undefined;

  constructor(private readonly emitter: EventEmitter & { readonly closed: boolean }) {}

  /** Calls back at the end, or at once where that has been. */
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
