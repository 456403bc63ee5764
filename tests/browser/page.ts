/*
 * What the tests share: which service leaks in which function, a page that fails the test on console
 * errors, violations of the content policy and requests to strangers, and a drag on the timeline.
 */
import { test as base, expect, type Page } from '@playwright/test';

export const SERVICE = process.env.SERVICE ?? 'checkout';
export const LEAK = process.env.LEAK_FUNCTION ?? 'cart.(*sessionCache).remember';
export const RANGE = process.env.RANGE ?? '1h';
/* Where the leak runs, as parts of the timeline; the window before it is quieter. */
export const DRAG = (process.env.DRAG ?? '0.7,0.98').split(',').map(Number) as [number, number];

export interface Watch {
  expected: RegExp[]; // console errors that belong to the test
}

export const test = base.extend<{ watch: Watch }>({
  watch: [
    async ({ page, baseURL }, use) => {
      const watch: Watch = { expected: [] };
      const wrong: string[] = [];
      page.on('console', (m) => {
        if (m.type() === 'error' || m.type() === 'warning') wrong.push(m.text());
      });
      page.on('pageerror', (e) => wrong.push(String(e)));
      page.on('request', (r) => {
        if (!r.url().startsWith(baseURL!) && !r.url().startsWith('data:')) wrong.push(`request to ${r.url()}`);
      });
      await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (e) =>
          console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`),
        );
      });
      await use(watch);
      expect(wrong.filter((w) => !watch.expected.some((e) => e.test(w)))).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

export const serviceUrl = (query = '', service = SERVICE) =>
  `/#/s/${encodeURIComponent(service)}?range=${RANGE}${query ? `&${query}` : ''}`;

export async function openService(page: Page, query = '', service = SERVICE): Promise<void> {
  await page.goto(serviceUrl(query, service));
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
}

export async function dragTimeline(page: Page, from: number, to: number): Promise<void> {
  const over = page.locator('.timeline .u-over');
  await expect(over).toBeVisible();
  const box = (await over.boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + (box.width * (from + to)) / 2, y);
  await page.mouse.move(box.x + box.width * to, y);
  await page.mouse.up();
}

interface Targets {
  targets: { service: string; readers: { collections: number }[] }[];
}

/* Until the service has been collected often enough to be compared with itself. */
export async function waitForData(): Promise<void> {
  const wanted = Number(process.env.COLLECTIONS ?? 0);
  const count = async () => {
    const { targets } = (await (await fetch(`${process.env.BASE_URL}/api/targets`)).json()) as Targets;
    const counts = targets.filter((t) => t.service === SERVICE).map((t) => t.readers[0]!.collections);
    return counts.length > 1 ? Math.min(...counts) : 0;
  };
  const options = { message: `collections of ${SERVICE}`, timeout: 600000 };
  if (wanted) await expect.poll(count, options).toBeGreaterThanOrEqual(wanted);
}

export const rows = (page: Page) => page.locator('.tbody [role=row]');
export const hash = (page: Page) => page.evaluate(() => location.hash);
