/**
 * Tracks the programs whose leaves a block must compute again. May list unchanged programs, if a transaction rolled
 * back.
 */
import type { DocumentRows } from "../programs/programs.js";

/** Parts of a program that changed. */
export interface DirtyProgram {
  /** True if the full document was written. */
  isComplete: boolean;
  /** True if the previous document was stored in parts, and therefore had a field tree. */
  hadTree: boolean;
  /** Text of the document if it is stored in parts and unchanged since it was written in full; otherwise undefined. */
  text: string | undefined;
  /** Names of the changed fields, if the document was not written in full. */
  readonly fields: Set<string>;
}

/**
 * Creates a tracker without programs.
 *
 * @param onRollback registers a function that runs if the current transaction is rolled back.
 */
export function createDirtyPrograms(onRollback: (undo: () => void) => void) {
  const all = new Map<string, DirtyProgram>();

  function program(address: string): DirtyProgram {
    const tracked = all.get(address) ?? { isComplete: false, hadTree: false, text: undefined, fields: new Set() };
    all.set(address, tracked);
    return tracked;
  }

  return {
    all: all as ReadonlyMap<string, DirtyProgram>,
    /** Returns the changed parts of a program, and adds the program if it is not tracked yet. */
    program,
    /** Wraps the rows of a program's document so that their changes are tracked. */
    track(address: string, rows: DocumentRows): DocumentRows {
      const dirty = program(address);
      const markField = ({ name }: { readonly name: string }): void => {
        dirty.text = undefined;
        if (!dirty.isComplete) {
          dirty.fields.add(name);
        }
      };
      return {
        ...rows,
        async saveText(text) {
          dirty.text = undefined;
          await rows.saveText(text);
        },
        async insertFields(position, fields) {
          fields.forEach(markField);
          await rows.insertFields(position, fields);
        },
        async saveField(field) {
          markField(field);
          await rows.saveField(field);
        },
        async deleteField(field) {
          markField(field);
          await rows.deleteField(field);
        },
        async clear(state) {
          dirty.isComplete = true;
          dirty.hadTree ||= state.inParts;
          dirty.text = undefined;
          dirty.fields.clear();
          await rows.clear(state);
        },
        onWritten(text) {
          dirty.isComplete = true;
          dirty.text = text;
          dirty.fields.clear();
          // After a rollback the rows are not those of this text, so the text must not be used.
          onRollback(() => (dirty.text = undefined));
        },
      };
    },
  };
}
