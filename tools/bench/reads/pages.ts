/** Measures how fast Chromium paints the pages of a node, and the bytes that it loads before. */
import { launchBrowser, whyNoBrowser } from "../../../test/helpers/process/browser.js";
import type { BenchContext, Row } from "../row.js";
import { median } from "../statistics.js";

const paths = ["/explore", "/status", "/docs", "/latest"];

interface Measured {
  readonly paintMs: number;
  /** Compressed bytes of the page, and of the data that its scripts loaded before the paint. */
  readonly loadedBytes: number;
}

/** Expression that waits for the first contentful paint, and returns what was measured. */
const measuring = `new Promise((resolve) => {
  new PerformanceObserver((list, observer) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint !== undefined) {
      observer.disconnect();
      const loaded = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
      const loadedBytes = loaded
        .filter(({ responseEnd }) => responseEnd > 0)
        .reduce((sum, { transferSize }) => sum + transferSize, 0);
      resolve({ paintMs: paint.startTime, loadedBytes });
    }
  }).observe({ type: "paint", buffered: true });
})`;

/** Opens each page in a new context, so that nothing is cached. */
export async function benchPages({ node, rounds, say }: BenchContext): Promise<Row[]> {
  if (whyNoBrowser !== undefined) {
    return [{ name: "pages", figures: {}, note: whyNoBrowser }];
  }
  const browser = await launchBrowser();
  const rows: Row[] = [];
  try {
    for (const path of paths) {
      say(`page ${path}`);
      const measured: Measured[] = [];
      for (let round = 0; round < rounds; round++) {
        const context = await browser.newContext();
        const page = await context.newPage();
        await page.goto(`http://127.0.0.1:${node.port}${path}`);
        measured.push((await page.evaluate(measuring)) as Measured);
        await context.close();
      }
      const paintMs = median(measured.map((each) => each.paintMs));
      const loadedBytes = median(measured.map((each) => each.loadedBytes));
      rows.push({ name: path, figures: { "first paint ms": paintMs, "loaded kB": loadedBytes / 1_000 } });
    }
  } finally {
    await browser.close();
  }
  return rows;
}
