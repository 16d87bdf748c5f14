/** Entity tags: names of answers, by which a caller asks whether the one that he has is still it (RFC 9110, 8.8.3 and 13.1.2). */

/** What separates tags, and the next of them; or the end. */
const nextTag = /[ \t,]*(?:(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)|$)/y;

/**
 * Whether `If-None-Match` names this tag, so that whoever asks has the answer. Weak and strong ones of the same text are
 * one; what is no list of tags names nothing.
 *
 * @param etag with its quotes, and with the mark of a weak one.
 */
export function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) {
    return false;
  }
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") {
    return true;
  }
  const text = strong(etag);
  let isNamed = false;
  nextTag.lastIndex = 0;
  while (nextTag.lastIndex < ifNoneMatch.length) {
    const found = nextTag.exec(ifNoneMatch);
    if (found === null) {
      return false;
    }
    isNamed ||= found[1] === text;
  }
  return isNamed;
}

function strong(etag: string): string {
  return etag.startsWith("W/") ? etag.slice(2) : etag;
}
