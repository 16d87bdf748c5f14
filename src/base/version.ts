import { readFileSync } from "node:fs";

interface PackageFile {
  readonly version: string;
  readonly gatehouse: { readonly codename: string };
}

const packageFile = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as PackageFile;

export const version = packageFile.version;

export const codename = packageFile.gatehouse.codename;
