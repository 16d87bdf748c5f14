/** Has on the disk what was written. */
import { open } from "node:fs/promises";

/** The content of a file. */
export async function syncFile(path: string): Promise<void> {
  await sync(path, "r+");
}

/** The names of a directory: files in it that were made, renamed or removed. */
export async function syncDirectory(path: string): Promise<void> {
  await sync(path, "r");
}

async function sync(path: string, flags: string): Promise<void> {
  const opened = await open(path, flags);
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
