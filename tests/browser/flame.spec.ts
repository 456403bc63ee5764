/*
 * Colours and shapes of the flame graph: legend, folding, languages, groups, images, marks of starts,
 * and what can be done with a selection. On the mock: Python above C above the kernel.
 */
import { readFileSync } from 'node:fs';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { dragTimeline, expect, hash, rows, test } from './page';

const CPU = 'cpu:cpu:nanoseconds';

async function openMock(page: Page, query = '', service = 'ranker'): Promise<void> {
  await page.goto(`/#/s/${service}?paused=1&view=both${query && `&${query}`}`);
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
}

const names = (page: Page) => rows(page).locator('.fn').allTextContents();
const total = (page: Page) => page.locator('.crumbs .dim').textContent();

test('the legend names kinds and modules, and highlights what is clicked', async ({ page }) => {
  await openMock(page);
  const legend = page.getByRole('group', { name: 'Legend' });
  for (const text of ['Native', 'Python', 'Interpreter/VM', 'Kernel', 'libopenblas.so.0', 'python3.11'])
    await expect(legend.getByRole('button', { name: new RegExp(`^${text} [\\d.]+%$`) })).toBeVisible();
  await legend.getByRole('button', { name: /^Kernel/ }).focus();
  await page.keyboard.press('Enter');
  await expect(legend.getByRole('button', { name: /^Kernel/ })).toHaveAttribute('aria-pressed', 'true');
  expect(await names(page)).toEqual(['copy_to_user', 'entry_SYSCALL_64', 'do_syscall_64', 'vfs_read.part.0']);
  expect(await hash(page)).toContain('lit=kernel');
  await legend.getByRole('button', { name: /^Kernel/ }).click();
  await expect(rows(page).filter({ hasText: 'dgemm_kernel' })).toBeVisible();
});

test('start-up and interpreter frames are folded until asked for', async ({ page }) => {
  await openMock(page);
  const whole = await total(page);
  expect(await names(page)).not.toContain('Py_BytesMain');
  const fold = page.getByRole('button', { name: 'Fold start-up' });
  await expect(fold).toHaveAttribute('aria-pressed', 'true');
  await fold.click();
  await expect(rows(page).filter({ hasText: 'Py_BytesMain' })).toBeVisible();
  expect(await total(page)).toBe(whole);
  expect(await hash(page)).toContain('frames=all');
});

test('one language alone has what its functions call', async ({ page }) => {
  await openMock(page);
  const whole = await total(page);
  await page.getByLabel('Language').selectOption({ label: 'Only Python' });
  await expect(rows(page).filter({ hasText: '(not called from Python)' })).toBeVisible();
  expect(await names(page)).not.toContain('dgemm_kernel');
  // What it calls is its own now: self and total are the same.
  await expect(rows(page).filter({ hasText: 'dot' })).toHaveText(/^dot(\D*[\d.]+\D+)([\d.]+%)\1\2$/);
  expect(await total(page)).toBe(whole);
});

test('any label splits the graph, with the same total', async ({ page }) => {
  await openMock(page);
  const whole = await total(page);
  await page.getByLabel('Group by label').selectOption({ label: 'by process' });
  await expect(rows(page).filter({ hasText: 'process.pid=2210' })).toContainText('50.0%');
  expect(await total(page)).toBe(whole);
  const options = page.getByLabel('Group by label').locator('option');
  await expect(options.filter({ hasText: 'by k8s.namespace.name' })).toHaveCount(1);
  // A comparison stays grouped.
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect(rows(page).filter({ hasText: 'process.pid=2223' })).toBeVisible();
});

for (const ending of ['svg', 'png'] as const)
  test(`the graph is saved as ${ending}`, async ({ page }) => {
    await openMock(page, 'q=Ranker');
    await page.getByRole('button', { name: 'Image' }).click();
    const waiting = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: new RegExp(`^${ending}`, 'i') }).click();
    const file = await waiting;
    expect(file.suggestedFilename()).toMatch(new RegExp(`^ranker-cpu-\\d{8}T\\d{6}Z\\.${ending}$`));
    const bytes = readFileSync((await file.path())!);
    if (ending === 'png') {
      expect(bytes.subarray(1, 4).toString()).toBe('PNG');
      expect(bytes.readUInt32BE(16)).toBe(2400);
      expect(bytes.readUInt32BE(20)).toBeGreaterThan(300);
      return;
    }
    const text = bytes.toString();
    const wrong = await page.evaluate((s) => new DOMParser().parseFromString(s, 'image/svg+xml').querySelector('parsererror')?.textContent ?? '', text);
    expect(wrong).toBe('');
    for (const part of ['ranker · CPU', 'search: Ranker', 'Ranker.score', 'libopenblas.so.0 (Native)']) expect(text).toContain(part);
  });

test('restarts and new versions are marked quietly', async ({ page }) => {
  await openMock(page);
  const mark = page.locator('.timeline .mark.build');
  await expect(mark).toHaveCount(1);
  await expect(mark).toHaveAttribute('title', /^New version 1\.4\.1, New build 1b7e04d2 of server, Process 2223 started \(/);
});

test('what can be done with a selection is at the selection', async ({ page }) => {
  await openMock(page);
  await dragTimeline(page, 0.6, 0.8);
  const actions = page.getByRole('group', { name: 'Selected window' });
  const box = (await actions.boundingBox())!;
  const band = (await page.locator('.timeline .band.b').boundingBox())!;
  const timeline = (await page.locator('.timeline').boundingBox())!;
  expect(box.x + box.width).toBeGreaterThan(band.x);
  expect(box.x).toBeLessThan(band.x + band.width);
  expect(box.y).toBeLessThan(timeline.y + timeline.height);
  await page.locator('.timeline').focus();
  await page.keyboard.press('Tab');
  await expect(actions.getByRole('button', { name: 'Zoom in' })).toBeFocused();
  await actions.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect(page.locator('.ab.a')).toBeVisible();
  await page.keyboard.press('x');
  await dragTimeline(page, 0.6, 0.8);
  await actions.getByRole('button', { name: 'Zoom in' }).click();
  await expect(actions).toHaveCount(0);
  expect(await hash(page)).toMatch(/range=\d+-\d+/);
});

test('a comparison says its units and gives both profiles', async ({ page }) => {
  await openMock(page, `base=prev&type=${CPU}`);
  const how = page.getByRole('group', { name: 'Comparison' });
  await expect(how.getByRole('button', { name: 'per second' })).toHaveAttribute('aria-pressed', 'true');
  await how.getByRole('button', { name: 'per process' }).click();
  await expect(page.locator('.windowline')).toContainText(/[\d.]+ → [\d.]+ processes/);
  await how.getByRole('button', { name: 'share' }).click();
  await expect(rows(page).first()).toContainText('%');
  for (const which of ['A', 'B']) {
    const link = page.getByRole('link', { name: `pprof ${which}` });
    await expect(link).toHaveAttribute('title', /-diff_base/);
    expect((await page.request.get((await link.getAttribute('href'))!)).status()).toBe(200);
  }
});

test('on a phone nothing is wider than the screen', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  for (const query of ['view=flame', 'view=table', 'view=flame&base=prev', 'view=flame&group=process.pid&frames=all']) {
    await openMock(page, query);
    expect(await wide()).toBeLessThanOrEqual(0);
    for (const part of ['.toolbar', '.windowline']) {
      const over = await page.locator(part).evaluate((el) => [...el.children].filter((c) => c.getBoundingClientRect().right > innerWidth + 1).length);
      expect(over, `${part} of ${query}`).toBe(0);
    }
  }
});

for (const scheme of ['dark', 'light'] as const)
  test(`axe finds nothing, in the ${scheme} theme`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    const check = async (what: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`)).toEqual([]);
    };
    await openMock(page, 'lit=python');
    await check('legend');
    await dragTimeline(page, 0.6, 0.8);
    await expect(page.getByRole('group', { name: 'Selected window' })).toBeVisible();
    await check('selection');
    await openMock(page, 'base=prev&per=process&group=process.pid');
    await check('comparison');
    await page.getByRole('button', { name: 'Image' }).click();
    await check('menu');
  });
