/** Priority queue with the smallest key first; items with equal keys leave in insertion order. */
export interface PriorityQueue<T> {
  push(key: number, item: T): void;
  /** Removes and returns the first item; undefined if the queue is empty. */
  pop(): { readonly key: number; readonly item: T } | undefined;
}

interface Slot<T> {
  readonly key: number;
  readonly order: number;
  readonly item: T;
}

/** Creates an empty queue, implemented as a binary heap. */
export function createPriorityQueue<T>(): PriorityQueue<T> {
  const heap: Slot<T>[] = [];
  let pushed = 0;
  const isBefore = (a: Slot<T>, b: Slot<T>): boolean => a.key < b.key || (a.key === b.key && a.order < b.order);

  function rise(slot: Slot<T>): void {
    let place = heap.length - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!isBefore(slot, heap[above]!)) {
        break;
      }
      heap[place] = heap[above]!;
      place = above;
    }
    heap[place] = slot;
  }

  function sink(slot: Slot<T>): void {
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) {
        below++;
      }
      if (below >= heap.length || !isBefore(heap[below]!, slot)) {
        break;
      }
      heap[place] = heap[below]!;
      place = below;
    }
    heap[place] = slot;
  }

  return {
    push(key, item) {
      const slot = { key, order: pushed++, item };
      heap.push(slot);
      rise(slot);
    },
    pop() {
      const first = heap[0];
      const last = heap.pop();
      if (last !== undefined && heap.length > 0) {
        sink(last);
      }
      return first;
    },
  };
}
