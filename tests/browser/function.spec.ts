/* Details of a function, and why a type is not there; on the mock, whose lines and values are known. */
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, hash, rows, test } from './page';

const LEAK = 'example.com/checkout/cart.(*sessionCache).remember';
const ENCODE = 'encoding/json.(*encodeState).marshal';

interface Answer {
  self: number;
  total: number;
  n_lines: number;
  lines: { line: number; self: number; total: number }[];
}

async function open(page: Page, query = '', service = 'checkout'): Promise<void> {
  await page.goto(`/#/s/${service}?paused=1${query && `&${query}`}`);
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
}

const openFunction = async (page: Page, fn: string, query = '') => {
  await open(page, `view=sandwich&fn=${encodeURIComponent(fn)}${query && `&${query}`}`);
  await expect(page.locator('.details[aria-busy="false"]')).toBeVisible();
};

const lines = (page: Page) => page.getByRole('region', { name: 'Lines' }).locator('tbody tr.line');

test('a click on a function shows its curve, its lines, its callers and callees', async ({ page }) => {
  await open(page, 'type=cpu:cpu:nanoseconds');
  await page.getByRole('searchbox').fill('encodeState).marshal');
  const answer = page.waitForResponse((r) => r.url().includes('/api/function?'));
  await rows(page).first().click();
  const f = (await (await answer).json()) as Answer;
  const details = page.getByRole('region', { name: `Function ${ENCODE}` });
  await expect(details.getByRole('heading')).toHaveText('json.(*encodeState).marshal');
  await expect(details).toContainText('json.go');
  // One row for each line, by number.
  await expect(lines(page)).toHaveCount(f.n_lines);
  expect(f.n_lines).toBe(2);
  const numbers = f.lines.map((l) => l.line).sort((a, b) => a - b);
  await expect(lines(page).locator('th')).toHaveText(numbers.map(String));
  await expect(lines(page).first().locator('td').nth(1)).toHaveText(/min$/);
  const curve = details.getByRole('figure', { name: /over time: total \S+\sm?cores, self 0\scores/ });
  await expect(curve.locator('canvas')).toBeVisible();
  await expect(page.getByRole('application', { name: `Callers of ${ENCODE}` })).toBeVisible();
  await expect(page.getByRole('application', { name: `Callees of ${ENCODE}` })).toBeVisible();
  // Its row stays marked, and what was there before comes back.
  await expect(page.locator('.row.on')).toContainText('encodeState');
  await details.getByRole('button', { name: 'Close' }).click();
  await expect(details).toBeHidden();
  await expect.poll(() => hash(page)).not.toContain('fn=');
});

test('the curve of a function has the time axis and the cursor of the timeline', async ({ page }) => {
  await openFunction(page, LEAK);
  const over = page.locator('.details .u-over');
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.95, box.y + 20);
  const legend = page.locator('.details .smalllegend b');
  await expect(legend.first()).toHaveText(/MB$/);
  const late = await legend.first().textContent();
  await expect(page.locator('.timeline .readout')).toHaveText(/\d\d:\d\d:\d\d/);
  // It began to leak 24 minutes ago.
  await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
  await expect(legend.first()).not.toHaveText(late!);
  await expect(legend.first()).toHaveText(/^4\d\d\skB$/);
});

test('a function is opened, compared and left with the keyboard', async ({ page }) => {
  await open(page);
  await rows(page).first().focus();
  await page.keyboard.press('Enter');
  await expect(page.locator('.details h2')).toContainText('remember');
  await expect(lines(page)).toHaveCount(1);
  const compare = page.locator('.details').getByRole('button', { name: 'Compare' });
  await compare.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('columnheader', { name: 'Change' }).last()).toBeVisible();
  await expect(lines(page).locator('.worse')).toHaveText(/^\+.*MB$/);
  await expect(page.locator('.figures')).toContainText('→');
  await page.keyboard.press('3');
  await page.locator('canvas[role=application]').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('s');
  await expect(page.locator('.details h2')).not.toContainText('remember');
});

test('the details say what a comparison of shares says', async ({ page }) => {
  await openFunction(page, LEAK, 'base=prev&norm=1&range=15m');
  await expect(page.locator('.figures')).toContainText('%');
  await expect(lines(page).locator('.worse')).toHaveText(/^\+\d+\.\d\d$/);
});

test('a link carries the function, and its actions filter the graph', async ({ page, context }) => {
  await openFunction(page, LEAK);
  const shared = page.url();
  const other = await context.newPage();
  await other.goto(shared);
  await expect(other.locator('.details h2')).toContainText('remember');
  await expect(lines(other)).toHaveCount(1);
  await other.close();
  await page.locator('.details').getByRole('button', { name: 'Hide' }).click();
  await expect(page.getByText('a filter hides it')).toBeVisible();
  await expect(page.getByText('Curve and lines are those of all stacks')).toBeVisible();
  await page.goBack();
  await page.locator('.details').getByRole('button', { name: 'Focus' }).click();
  await expect(rows(page)).toHaveCount(7);
});

test('lines have their source, and two lines around each', async ({ page }) => {
  const answer = page.waitForResponse((r) => r.url().includes('/api/function/source?'));
  await openFunction(page, LEAK);
  const { lines: source } = (await (await answer).json()) as { lines: { line: number; text: string }[] };
  expect(source).toHaveLength(5);
  const table = page.getByRole('region', { name: 'Lines' });
  await expect(table.getByRole('columnheader', { name: 'Source' })).toBeVisible();
  await expect(table.locator('tbody th')).toHaveText(source.map((x) => String(x.line)));
  // As text, whatever is in it.
  await expect(table.locator('td.source')).toHaveText(source.map((x) => x.text.trim()));
  await expect(table.locator('tr.around')).toHaveCount(4);
  await expect(lines(page).locator('td.source')).toHaveText(source[2]!.text.trim());
  await expect(table.locator('tr.gap')).toHaveCount(0);
});

test('what lies between lines far apart is left out, and seen to be', async ({ page }) => {
  await openFunction(page, 'example.com/checkout/api.(*Handler).List', 'type=cpu:cpu:nanoseconds');
  const table = page.getByRole('region', { name: 'Lines' });
  await expect(lines(page)).toHaveCount(2);
  await expect(table.locator('tr.gap')).toHaveCount(1);
  const numbers = (await table.locator('tbody th').allTextContents()).map(Number);
  expect(numbers).toHaveLength(10);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
});

test('where the source may not be shown, the reason is', async ({ page }) => {
  await openFunction(page, 'example.com/checkout/store.(*DB).Lookup', 'type=cpu:cpu:nanoseconds');
  await expect(page.getByText('Source not readable: not everybody on this machine may read it.')).toBeVisible();
  await expect(lines(page)).toHaveCount(1);
  await expect(page.getByRole('columnheader', { name: 'Source' })).toHaveCount(0);
  await openFunction(page, ENCODE, 'type=cpu:cpu:nanoseconds');
  await expect(page.getByText('Source not readable: the profile does not say where the file is.')).toBeVisible();
});

test('a file that was changed meanwhile is said to be', async ({ page }) => {
  await page.route('**/api/function/source?*', async (route) => {
    const body = await (await route.fetch()).json();
    await route.fulfill({ json: { ...body, modified: Date.now() } });
  });
  await openFunction(page, LEAK);
  await expect(page.getByText(/^The file was changed at .*: its lines may not be those of the profile/)).toBeVisible();
});

test('a function that is not in the window says so', async ({ page }) => {
  await openFunction(page, 'main.nobody');
  await expect(page.getByText('Not in this window.')).toBeVisible();
  await expect(page.locator('.figures')).toContainText('total 0');
});

test('at phone width the details take the place of the table', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, 'view=table');
  await rows(page).first().click();
  await expect(page.locator('.details h2')).toBeFocused();
  await expect(lines(page)).toHaveCount(1);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  expect(wide).toBe(false);
});

test('what could be there and is not says why, and what turns it on', async ({ page }) => {
  await open(page, '', 'gateway');
  const none = page.getByRole('group', { name: 'Not collected' });
  await expect(none.getByRole('button')).toHaveCount(3);
  await expect(none.getByRole('button', { name: /^Blocking/ })).toContainText('block profiling is off in this process');
  await none.getByRole('button', { name: /^Blocking/ }).click();
  await expect(page.getByText('runtime.SetBlockProfileRate(10000)')).toBeVisible();
  await expect(page.getByText('sonde block 2210 --force-block')).toBeVisible();
  await none.getByRole('button', { name: /^Mutex delay/ }).click();
  await expect(page.getByRole('heading', { name: 'Mutex delay: no data in this range' })).toBeVisible();
  await none.getByRole('button', { name: /^Off-CPU/ }).click();
  await expect(page.getByText('start sonde run with --offcpu 1ms')).toBeVisible();
  await page.getByRole('button', { name: /^CPU/ }).click();
  await expect(page.getByRole('application')).toBeVisible();
});

test('where all is there, nothing is said', async ({ page }) => {
  await open(page);
  await expect(page.getByRole('button', { name: /^Mutex delay/ })).toBeVisible();
  await expect(page.getByRole('group', { name: 'Not collected' })).toHaveCount(0);
});

for (const scheme of ['light', 'dark'] as const)
  test(`axe finds nothing in the details of a function, in the ${scheme} theme`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    for (const query of ['', 'base=prev&range=15m']) {
      await openFunction(page, LEAK, query);
      expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
    }
    await page.goto('/#/s/gateway?type=go_block:delay:nanoseconds&paused=1');
    await expect(page.getByText('To turn it on')).toBeVisible();
    expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  });
