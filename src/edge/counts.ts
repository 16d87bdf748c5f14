/** Numbers by key, of which those that are zero take no room. */
export interface Counts {
  get(key: string): number;
  /** Adds to a number, and gives it. */
  add(key: string, change: number): number;
}

export function createCounts(): Counts {
  const numbers = new Map<string, number>();
  return {
    get: (key) => numbers.get(key) ?? 0,
    add(key, change) {
      const number = (numbers.get(key) ?? 0) + change;
      if (number === 0) {
        numbers.delete(key);
      } else {
        numbers.set(key, number);
      }
      return number;
    },
  };
}
