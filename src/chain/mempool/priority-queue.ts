/** Priority queue with the smallest key first; items with equal keys leave in insertion order. */
export interface PriorityQueue<T> {
  push(key: number, item: T): void;
  /** Removes and returns the first item; undefined if the queue is empty. */
  pop(): { readonly key: number; readonly item: T } | undefined;
}

interface HeapEntry<T> {
  readonly key: number;
  /** Number of entries that were pushed before. */
  readonly order: number;
  readonly item: T;
}

/** Creates an empty queue, implemented as a binary heap. */
export function createPriorityQueue<T>(): PriorityQueue<T> {
  const heap: HeapEntry<T>[] = [];
  let pushed = 0;
  const isBefore = (a: HeapEntry<T>, b: HeapEntry<T>): boolean =>
    a.key < b.key || (a.key === b.key && a.order < b.order);

  /** Places an entry in the last slot of the heap, or above while it precedes its parent. */
  function rise(entry: HeapEntry<T>): void {
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) {
        break;
      }
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  /** Places an entry in the first slot of the heap, or below while a child precedes it. */
  function sink(entry: HeapEntry<T>): void {
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) {
        child++;
      }
      if (child >= heap.length || !isBefore(heap[child]!, entry)) {
        break;
      }
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = entry;
  }

  return {
    push(key, item) {
      const entry = { key, order: pushed++, item };
      heap.push(entry);
      rise(entry);
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
