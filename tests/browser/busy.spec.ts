/* The overview of a busy machine: 1,000 services, most of them short-lived programs. */
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, hash, test } from './page';

const INTERVAL = 15e3;
const rows = (page: Page) => page.locator('.srow');
const names = (page: Page) => page.locator('.srow .name');
const wide = (page: Page) => page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll('main')].map((m) => m.scrollWidth - m.clientWidth)));

async function open(page: Page, query = ''): Promise<void> {
  await page.goto(`/#/${query && `?${query}`}`);
  await expect(rows(page).first()).toBeVisible();
}

/* What has the focus now, or the row that it is in. */
const focusedRow = (page: Page) => page.evaluate(() => document.activeElement?.closest<HTMLElement>('.srow')?.getAttribute('aria-rowindex') ?? '');

test('a thousand services are there, and only the rows in view are in the document', async ({ page }) => {
  await open(page);
  const table = page.getByRole('table', { name: 'Services' });
  expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(90);
  await expect(page.getByRole('heading', { name: /^Services/, level: 2 })).toHaveText(/^Services 8\d, and 9\d\d short-lived programs$/);
  expect(await rows(page).count()).toBeLessThan(60);
  await page.locator('main').evaluate((m) => m.scrollTo(0, 1e6));
  await expect(page.locator(`.srow[aria-rowindex="${await table.getAttribute('aria-rowcount')}"]`)).toBeVisible();
  expect(await rows(page).count()).toBeLessThan(60);
});

test('short-lived programs are one row per parent, which opens', async ({ page }) => {
  await open(page, 'filter=');
  const group = page.getByRole('button', { name: /^bash: \d+ short-lived programs$/ }).last();
  await page.getByRole('button', { name: 'Service', exact: true }).click();
  await expect(group).toHaveAttribute('aria-expanded', 'false');
  await expect(page.locator('.srow.inside')).toHaveCount(0);
  const before = Number(await page.getByRole('table').getAttribute('aria-rowcount'));
  await group.click();
  await expect(group).toHaveAttribute('aria-expanded', 'true');
  await expect(page.locator('.srow.inside').first()).toContainText('short-lived, last seen');
  const programs = Number(/\d+/.exec((await group.textContent())!)![0]);
  await expect(page.getByRole('table')).toHaveAttribute('aria-rowcount', String(before + programs));
  await group.click();
  await expect(page.locator('.srow.inside')).toHaveCount(0);
});

test('a search finds folded programs, and a name of 127 characters is cut and not the layout', async ({ page }) => {
  await open(page);
  await page.keyboard.press('/');
  await page.keyboard.type('cc1');
  await expect(names(page)).toHaveText([/^cc1/, /^cc1/]);
  await expect(page.getByRole('status').filter({ hasText: /^2 of / })).toBeVisible();
  await page.getByRole('searchbox').fill('integration_test_of');
  const long = names(page).first();
  await expect(long).toHaveAttribute('title', /^integration_test_of.{108}$/);
  const [shown, whole] = await long.evaluate((e) => [e.clientWidth, e.scrollWidth]);
  expect(shown).toBeLessThan(whole!);
  expect(await wide(page)).toBeLessThanOrEqual(0);
  await page.getByRole('searchbox').fill('nobody has this name');
  await page.getByRole('button', { name: 'Clear search' }).click();
  await expect(rows(page).first()).toBeVisible();
});

test('every column sorts, and the address keeps it', async ({ page }) => {
  await open(page);
  const cores = async () => (await page.locator('.c-cpu .now:not(.dim)').allTextContents()).slice(0, 12).map(parseFloat);
  const sorted = (a: number[], sign: number) => a.every((v, i) => !i || sign * (a[i - 1]! - v) >= 0);
  expect(sorted(await cores(), 1)).toBe(true);
  await page.getByRole('button', { name: 'CPU', exact: true }).click();
  await expect(page.getByRole('columnheader', { name: 'CPU' })).toHaveAttribute('aria-sort', 'ascending');
  await expect.poll(async () => sorted(await cores(), -1)).toBe(true);
  for (const title of ['Service', 'Runtime', 'Memory', 'Processes', 'Profiles']) {
    await page.getByRole('columnheader', { name: title }).getByRole('button').click();
    await expect(page.getByRole('columnheader', { name: title })).toHaveAttribute('aria-sort', 'descending');
  }
  await page.getByRole('button', { name: 'Memory' }).click();
  await expect.poll(() => hash(page)).toContain('sort=memory+down');
  await page.reload();
  await expect(page.getByRole('columnheader', { name: 'Memory' })).toHaveAttribute('aria-sort', 'descending');
  await expect(page.locator('.srow .c-memory .now').first()).toContainText('GB');
});

test('all rows are reached by Tab and by the arrow keys', async ({ page }) => {
  await open(page);
  await names(page).first().focus();
  for (let i = 0; i < 40; i++) await page.keyboard.press('ArrowDown');
  await expect.poll(() => focusedRow(page)).toBe('42');
  await expect(page.locator('.srow[aria-rowindex="42"]')).toBeInViewport();
  await page.keyboard.press('End');
  const last = await page.getByRole('table').getAttribute('aria-rowcount');
  await expect.poll(() => focusedRow(page)).toBe(last);
  await page.keyboard.press('Home');
  await expect.poll(() => focusedRow(page)).toBe('2');
  for (let i = 0; i < 60; i++) await page.keyboard.press('Tab');
  await expect.poll(async () => Number(await focusedRow(page))).toBeGreaterThan(8);
  await expect(page.locator(`.srow[aria-rowindex="${await focusedRow(page)}"]`)).toBeInViewport();
  // Scrolled out of view, what has the focus keeps it.
  const before = await focusedRow(page);
  await page.locator('main').evaluate((m) => m.scrollTo(0, 1e6));
  await expect(page.locator(`.srow[aria-rowindex="${last}"]`)).toBeVisible();
  expect(await focusedRow(page)).toBe(before);
});

test('a refresh asks for what is new, and scroll position, focus and open rows stay', async ({ page }) => {
  const asked: URL[] = [];
  const nexts: string[] = [];
  page.on('request', (r) => r.url().includes('/api/overview') && asked.push(new URL(r.url())));
  page.on('response', async (r) => r.url().includes('/api/overview') && nexts.push(String((await r.json()).next)));
  await page.clock.install();
  await open(page, 'sort=name+down');
  expect(asked.map((u) => u.searchParams.has('since'))).toEqual([false]);
  const group = page.getByRole('button', { name: /^bash: \d+ short-lived programs$/ }).last();
  await group.click();
  const program = page.locator('.srow.inside .name').nth(4);
  await program.focus();
  const [text, scroll] = [await program.textContent(), await page.locator('main').evaluate((m) => ((m.scrollTop += 30), m.scrollTop))];
  const bodies: number[] = [];
  for (let i = 0; i < 3; i++) {
    const next = page.waitForResponse(/api\/overview/);
    await page.clock.runFor(INTERVAL);
    bodies.push((await (await next).body()).length);
  }
  expect(asked.slice(1).every((u) => u.searchParams.has('since'))).toBe(true);
  expect(asked.length).toBeGreaterThanOrEqual(4);
  // Each continues the one before.
  expect(asked.slice(1).map((u) => u.searchParams.get('since'))).toEqual(nexts.slice(0, asked.length - 1));
  for (const size of bodies) expect(size).toBeLessThan(40000);
  expect(await page.evaluate(() => document.activeElement!.textContent)).toBe(text);
  expect(await page.locator('main').evaluate((m) => m.scrollTop)).toBe(scroll);
  await expect(group).toHaveAttribute('aria-expanded', 'true');
});

test('a server that was started anew is asked for everything', async ({ page }) => {
  const asked: boolean[] = [];
  let moved = 0;
  page.on('request', (r) => r.url().includes('/api/overview') && asked.push(r.url().includes('since=')));
  await page.clock.install();
  await page.route('**/api/health', async (route) => {
    const health = await (await route.fetch()).json();
    await route.fulfill({ json: { ...health, started: health.started + moved } });
  });
  await open(page);
  moved = 1000;
  await page.clock.runFor(INTERVAL);
  await expect.poll(() => asked.filter((since) => !since).length).toBe(2);
  await expect(rows(page).first()).toBeVisible();
});

test('while the agent is away there is one banner, Live is off and the data stays; then it goes on by itself', async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  await page.clock.install();
  await open(page);
  const first = await names(page).first().textContent();
  let away = true;
  await page.route('**/api/**', (route) => (away ? route.abort() : route.continue()));
  await page.clock.runFor(INTERVAL);
  const banner = page.getByRole('alert');
  await expect(banner).toHaveCount(1);
  await expect(banner).toContainText('sonde is not responding');
  await expect(banner).toContainText('sonde run');
  const live = page.locator('.live');
  await expect(live).toHaveAttribute('aria-pressed', 'false');
  await expect(names(page).first()).toHaveText(first!);
  await page.clock.runFor(2 * INTERVAL);
  await expect(banner).toHaveCount(1);
  await expect(names(page).first()).toHaveText(first!);
  // A page that was never loaded says the same, once.
  await page.goto('/#/s/checkout');
  await expect(banner).toHaveCount(1);
  await page.goto('/#/');
  away = false;
  const next = page.waitForResponse(/api\/overview/);
  await page.clock.runFor(4000);
  await next;
  await expect(banner).toHaveCount(0);
  await expect(live).toHaveAttribute('aria-pressed', 'true');
  await expect(rows(page).first()).toBeVisible();
});

test('a server that is away from the start is waited for', async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  await page.clock.install();
  let away = true;
  await page.route('**/api/**', (route) => (away ? route.abort() : route.continue()));
  await page.goto('/');
  await expect(page.getByRole('alert')).toHaveCount(1);
  away = false;
  await page.clock.runFor(4000);
  await expect(rows(page).first()).toBeVisible();
  await expect(page.locator('.pill').first()).toHaveText(/^CPU/);
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('the picture of the machine names what is under the pointer, and a click opens it', async ({ page }) => {
  await open(page, 'paused=1');
  await expect(page.getByRole('figure', { name: /^CPU: \d\d\.\d\scores of 32 busy$/ })).toBeVisible();
  await expect(page.getByRole('figure', { name: /^Memory: \d\d\.\d\sGB of 96\.0\sGB used$/ })).toBeVisible();
  await expect(page.locator('.mlegend li')).toHaveCount(11);
  const over = page.locator('.mcpu .u-over');
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.25, box.y + box.height - 4);
  await expect(page.locator('.mlegend li.on')).toHaveText(/^CPU of search\d\.\d\d\scores$/);
  await expect(page.locator('.mcpu .when')).toHaveText(/\d\d:\d\d/);
  await page.mouse.move(box.x + box.width * 0.25, box.y + 3);
  await expect(page.locator('.mlegend li.on')).toHaveText(/^idle/);
  await page.mouse.click(box.x + box.width * 0.25, box.y + box.height - 4);
  await expect.poll(() => hash(page)).toMatch(/^#\/s\/search\?type=cpu:cpu:nanoseconds/);
  await page.goBack();
  // A group leads to its row, which is open then.
  await page.locator('.mlegend').getByRole('button', { name: /^bash: / }).click();
  await expect(page.locator('.srow.inside').first()).toBeInViewport();
  // A drag zooms in.
  await page.locator('main').evaluate((m) => m.scrollTo(0, 0));
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => hash(page)).toMatch(/range=\d+-\d+/);
  await expect(rows(page).first()).toBeVisible();
});

test('all ranges are shown, in whole minutes', async ({ page }) => {
  const steps: number[] = [];
  page.on('request', (r) => r.url().includes('/api/overview') && steps.push(Number(new URL(r.url()).searchParams.get('step_ms')) / 60e3));
  await open(page, 'range=15m');
  for (const range of ['1h', '6h', '24h', '7d']) {
    const next = page.waitForResponse(/api\/overview/);
    await page.getByRole('combobox', { name: 'Time range' }).selectOption(range);
    await next;
    await expect(rows(page).first()).toBeVisible();
    await expect(page.getByRole('figure', { name: /^CPU: (1|2)\d\.\d\scores of 32 busy$/ })).toBeVisible();
  }
  expect([...new Set(steps)]).toEqual([1, 5, 20, 180]);
});

test('what comes first says what to expect, and gives way to the services', async ({ page }) => {
  await page.clock.install();
  let empty = true;
  const nothing = { machine: [0, [], []], types: [], services: [], rows: [] };
  await page.route('**/api/overview?*', async (route) => (empty ? route.fulfill({ json: { ...(await (await route.fetch()).json()), ...nothing } }) : route.continue()));
  await page.route('**/api/health', async (route) => {
    const health = await (await route.fetch()).json();
    await route.fulfill({ json: { ...health, started: health.now - 9e3, uptime_ms: 9e3, cpu_samples: 0, targets: 214, profiled: 0 } });
  });
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Nothing collected yet' })).toBeVisible();
  await expect(page.locator('.steps')).toContainText('214 found');
  await expect(page.locator('.steps')).toContainText(/after one interval of 15 s: in \d s/);
  empty = false;
  await page.clock.runFor(INTERVAL);
  await expect(rows(page).first()).toBeVisible();
  await expect(page.getByText('Nothing collected yet')).toHaveCount(0);
});

test('on a phone there is one column of cards and nothing to scroll sideways', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, 'filter=integration_test');
  expect(await wide(page)).toBeLessThanOrEqual(0);
  await open(page);
  expect(await wide(page)).toBeLessThanOrEqual(0);
  await page.locator('main').evaluate((m) => m.scrollTo(0, 3000));
  const boxes = await rows(page).evaluateAll((all) => all.map((e) => e.getBoundingClientRect()).map((b) => [b.left, b.right, b.top, b.height]));
  for (const [left, right] of boxes) expect(left! >= 0 && right! <= 390).toBe(true);
  const tops = boxes.map((b) => b[2]!).sort((a, b) => a - b);
  tops.forEach((t, i) => i && expect(t - tops[i - 1]!).toBeGreaterThanOrEqual(boxes[0]![3]! - 1));
  await page.locator('.pill').first().click();
  await expect.poll(() => hash(page)).toContain('#/s/');
});

test('coming back from a service leads to where the page was left', async ({ page }) => {
  await open(page, 'paused=1');
  await page.locator('main').evaluate((m) => m.scrollTo(0, 900));
  const row = page.locator('.srow[aria-rowindex="26"] .name');
  await row.click();
  await expect.poll(() => hash(page)).toContain('#/s/');
  await page.goBack();
  await expect(page.locator('.srow[aria-rowindex="26"]')).toBeVisible();
  expect(await page.locator('main').evaluate((m) => m.scrollTop)).toBe(900);
});

for (const scheme of ['dark', 'light'] as const)
  test(`axe finds nothing on a busy machine in the ${scheme} theme`, async ({ page, watch }) => {
    watch.expected.push(/Failed to load resource/);
    await page.emulateMedia({ colorScheme: scheme });
    const check = async (what: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`)).toEqual([]);
    };
    await open(page, 'sort=name+down');
    await page.getByRole('button', { name: /short-lived program/ }).first().click();
    await check('overview');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('main').evaluate((m) => m.scrollTo(0, 2000));
    await check('phone');
    await page.route('**/api/**', (route) => route.abort());
    await page.getByRole('combobox', { name: 'Time range' }).selectOption('6h');
    await expect(page.getByRole('alert')).toBeVisible();
    await check('away');
  });
