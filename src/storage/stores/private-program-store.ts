/** Whether any program is kept from callers. */
import type { Queries } from "../../db/queries/database.js";

/**
 * Returns true if there is a program that is not public, also one that was deleted: its history is still in blocks. Reads
 * all programs where all are public.
 */
export async function hasPrivatePrograms({ prepare }: Pick<Queries, "prepare">): Promise<boolean> {
  const find = prepare<{ readonly address: string }>(
    "SELECT address FROM programs WHERE mode <> 'public' LIMIT 1",
    "list",
  );
  return (await find()).length > 0;
}
