/** Size limits of documents. */

/** Limit on the size of a document, in bytes. */
export const maxDocumentBytes = 1024 * 1024;
/** Limit on the nesting depth of a document. */
export const maxDocumentDepth = 64;
/** Limit on the size of a field name, in bytes. Names are keys of a database index, whose rows have a size limit. */
export const maxFieldBytes = 256;
