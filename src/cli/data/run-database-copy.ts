/** Implementation of `gatehouse database copy`. */
import { z } from "zod";
import { databaseUrl } from "../../config/value-types.js";
import { copyNodeDatabase } from "../../node/data/copy-database.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import { print } from "../terminal/output.js";
import { type Progress, startProgress } from "../terminal/progress.js";

/** Copies a database and prints the result. */
export async function runDatabaseCopy(from: string, to: string, json: boolean): Promise<void> {
  let bar: { readonly step: string; readonly progress: Progress } | undefined;
  const { tables, resumed } = await copyNodeDatabase({
    from: readUrl("FROM", from),
    to: readUrl("TO", to),
    onProgress(step, done, total) {
      if (bar?.step !== step) {
        bar?.progress.end();
        bar = { step, progress: startProgress(`rows ${step}`, total, step === "copied" ? done : 0) };
      }
      bar.progress.update(done, total);
    },
  });
  bar?.progress.end();
  const rows = Object.values(tables).reduce((sum, count) => sum + count, 0);
  print(
    json
      ? JSON.stringify({ ok: true, resumed, rows, tables })
      : `Copied and compared ${rows} rows of ${Object.keys(tables).length} tables: the copy is identical.`,
  );
}

/** Returns the URL of a database. A path denotes a SQLite file. */
function readUrl(argument: string, value: string): string {
  const url = /^[a-z]+:/.test(value) ? value : `sqlite:${value}`;
  const { success } = databaseUrl.schema(z).safeParse(url);
  if (!success) {
    throw new ExitError(`${argument} must be ${databaseUrl.allowed}, not "${value}".`, exitCodes.usage);
  }
  return databaseUrl.resolve?.(url, process.cwd()) ?? url;
}
