/**
 * What transactions touched of programs: a list of what has to be looked at, which may name more than was changed, where a
 * transaction was taken back.
 */
import type { DocumentRows } from "../programs/programs.js";

/** What was touched of one. */
export interface DirtyProgram {
  /** Its document was written as a whole. */
  isWhole: boolean;
  /** The one before that was kept in parts, and had a tree of its fields. */
  hadTree: boolean;
  /** Its text, where it is at hand: of one in parts that nothing has changed since. */
  text: string | undefined;
  /** Names of fields of a document that was not. */
  readonly fields: Set<string>;
}

/** @param onTakenBack hears what is to be done when the transaction that touches something is taken back. */
export function createDirtyPrograms(onTakenBack: (undo: () => void) => void) {
  const all = new Map<string, DirtyProgram>();

  function program(address: string): DirtyProgram {
    const known = all.get(address) ?? { isWhole: false, hadTree: false, text: undefined, fields: new Set() };
    all.set(address, known);
    return known;
  }

  return {
    all: all as ReadonlyMap<string, DirtyProgram>,
    program,
    /** Rows of a program's document, whose changes are heard of. */
    track(address: string, rows: DocumentRows): DocumentRows {
      const touched = program(address);
      const touch = ({ name }: { readonly name: string }): void => {
        touched.text = undefined;
        if (!touched.isWhole) {
          touched.fields.add(name);
        }
      };
      return {
        ...rows,
        async saveText(text) {
          touched.text = undefined;
          await rows.saveText(text);
        },
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
          Object.assign(touched, { isWhole: true, hadTree: touched.hadTree || state.inParts, text: undefined });
          touched.fields.clear();
          await rows.clear(state);
        },
        wrote(text) {
          Object.assign(touched, { isWhole: true, text });
          touched.fields.clear();
          // What was written is not there then: no text that is at hand is believed.
          onTakenBack(() => (touched.text = undefined));
        },
      };
    },
  };
}
