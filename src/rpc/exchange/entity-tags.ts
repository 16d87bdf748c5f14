/**
 * Entity tags, with which clients check if their copy of a response is current (RFC 9110, sections 8.8.3 and 13.1.2).
 */

/** Pattern of the next tag and the separators before it, or of the end of the list. */
const nextTag = /[ \t,]*(?:(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)|$)/y;

/**
 * Returns true if `If-None-Match` names this tag, so the client has the response. Weak and strong tags with the same
 * text are equal. A malformed list matches nothing.
 *
 * @param etag the tag with its quotes, and with `W/` if weak.
 */
export function matchesIfNoneMatch(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) {
    return false;
  }
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") {
    return true;
  }
  const text = strong(etag);
  let isListed = false;
  nextTag.lastIndex = 0;
  while (nextTag.lastIndex < ifNoneMatch.length) {
    const match = nextTag.exec(ifNoneMatch);
    if (match === null) {
      return false;
    }
    isListed ||= match[1] === text;
  }
  return isListed;
}

function strong(etag: string): string {
  return etag.startsWith("W/") ? etag.slice(2) : etag;
}
