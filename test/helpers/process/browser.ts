/** A real browser, where there is one. */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Teardown } from "../nodes/teardown.js";

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

/** A page in a context of its own, 1,200 wide where nothing else is said; it goes to the address when it is told to. */
export async function openPage(t: Teardown, browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  t.teardown(() => context.close());
  // A browser that shares two cores with everything else takes its time.
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  const heard = listen(page);
  return { page, context, go: () => page.goto(url), ...heard };
}
