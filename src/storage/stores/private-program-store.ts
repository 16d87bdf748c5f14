/** Detects programs that are not public. */
import type { Queries } from "../../db/queries/database.js";

/**
 * Returns true if a program is not public. Deleted programs count, since blocks still contain their history. Scans all
 * programs if every program is public.
 */
export async function hasPrivatePrograms({ prepare }: Pick<Queries, "prepare">): Promise<boolean> {
  const find = prepare<{ readonly address: string }>(
    "SELECT address FROM programs WHERE mode <> 'public' LIMIT 1",
    "list",
  );
  return (await find()).length > 0;
}
