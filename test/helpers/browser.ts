/** A real browser, where there is one. */
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) =>
  existsSync(path),
);

/** Why there is none; undefined where there is one. */
export const whyNoBrowser = executablePath === undefined ? "Chromium is not installed" : undefined;

/** Starts it. */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Notes what the browser complains of, and what a page asks for. */
export function listen(page: Page): { readonly complaints: string[]; readonly asked: string[] } {
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on("console", (message) => {
    // A node that shares two cores with a browser refuses work now and then: that is no fault of a page.
    if (message.type() === "error" && !message.text().includes("status of 503")) {
      complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => asked.push(request.url()));
  return { complaints, asked };
}
