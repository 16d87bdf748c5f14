/** The JSON text of an object with these members before its own, which stay as they were written. */
export function withMembers(object: string, members: object): string {
  const first = JSON.stringify(members).slice(1, -1);
  const rest = object.slice(1);
  return `{${first}${rest === "}" ? "" : ","}${rest}`;
}
