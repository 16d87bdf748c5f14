/** Returns the JSON text of an object with additional members before its own members, whose text stays unchanged. */
export function withMembers(object: string, members: object): string {
  const first = JSON.stringify(members).slice(1, -1);
  const rest = object.slice(1);
  return `{${first}${rest === "}" ? "" : ","}${rest}`;
}
