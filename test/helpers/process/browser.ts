/** Starts Chromium, if it is installed, and opens pages in it. */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import type { Teardown } from "../nodes/teardown.js";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) =>
  existsSync(path),
);

/** The reason that no browser is available; undefined if one is. */
export const whyNoBrowser = executablePath === undefined ? "Chromium is not installed" : undefined;

/** Starts Chromium. */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Records the errors of a page, and the URLs that it requests. */
export function recordPage(page: Page): { readonly errors: string[]; readonly requests: string[] } {
  const errors: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => {
    // An overloaded node on a busy machine may reject requests, which is not an error of the page.
    if (message.type() === "error" && !message.text().includes("status of 503")) {
      errors.push(message.text());
    }
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  return { errors, requests };
}

/** Opens a page in a new context, by default 1,200 px wide. Returns it with a function that loads the URL. */
export async function openPage(t: Teardown, browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  t.teardown(() => context.close());
  // A browser on a busy machine is slow.
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  return { page, context, go: () => page.goto(url), ...recordPage(page) };
}

/** Opens a page in a new context, and loads it. */
export async function openLoaded(t: Teardown, browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const opened = await openPage(t, browser, url, options);
  await opened.go();
  return opened;
}

/** Finds the title of a view. */
export const heading = (page: Page, name: string | RegExp): Locator => page.getByRole("heading", { level: 1, name });
