/** How large a document may be. */

/** Most bytes of a document. */
export const maxDocumentBytes = 1024 * 1024;
/** Deepest nesting of a document. */
export const maxDocumentDepth = 64;
/** Most bytes of a field's name. Names are keys of an index in the database, whose rows have a bound. */
export const maxFieldBytes = 256;
