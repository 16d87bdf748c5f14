/**
 * What transactions touched of programs: a list of what has to be looked at, which may name more than was changed, where a
 * transaction was taken back.
 */
import type { DocumentRows } from "./programs.js";

/** What was touched of one. */
export interface TouchedProgram {
  /** Its document was written as a whole. */
  isWhole: boolean;
  /** Names of fields of a document that was not. */
  readonly fields: Set<string>;
}

export function createTouched() {
  const all = new Map<string, TouchedProgram>();

  function program(address: string): TouchedProgram {
    const known = all.get(address) ?? { isWhole: false, fields: new Set() };
    all.set(address, known);
    return known;
  }

  return {
    all: all as ReadonlyMap<string, TouchedProgram>,
    program,
    /** Rows of a program's document, whose changes are heard of. */
    track(address: string, rows: DocumentRows): DocumentRows {
      const touched = program(address);
      const touch = ({ name }: { readonly name: string }): void => {
        if (!touched.isWhole) {
          touched.fields.add(name);
        }
      };
      return {
        ...rows,
        async insertFields(position, fields) {
          fields.forEach(touch);
          await rows.insertFields(position, fields);
        },
        async saveField(field) {
          touch(field);
          await rows.saveField(field);
        },
        async deleteField(field) {
          touch(field);
          await rows.deleteField(field);
        },
        async clear(state) {
          touched.isWhole = true;
          touched.fields.clear();
          await rows.clear(state);
        },
      };
    },
  };
}
