/*
 * What no machine of a test has: profile types that are still to come, 200,000 nodes, a full disk.
 */
import { expect, openService, rows, test } from './page';

const CPU = 'cpu:cpu:nanoseconds';

test('a profile type that is new has its column, its card and its unit', async ({ page }) => {
  await page.goto('/');
  for (const title of ['CPU', 'Allocation rate', 'Live heap', 'Goroutines'])
    await expect(page.getByRole('columnheader', { name: title })).toBeVisible();
  await expect(page.getByRole('link', { name: /^checkout, CPU: \S+\scores$/ })).toBeVisible();
  await expect(page.getByRole('link', { name: /^checkout, Goroutines: \d+$/ })).toBeVisible();
  await page.getByRole('button', { name: 'CPU' }).click();
  await expect(page.locator('.services tbody th').first()).toHaveText('search');
  await page.getByRole('link', { name: /^checkout, CPU:/ }).click();
  await expect(page.getByRole('button', { name: /^Go mutex delay.*\sms\/s$/ })).toBeVisible();
  // A window holds time, a comparison cores.
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(/\s(s|min)/);
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(/\sm?cores/);
});

test('a service without a type has a dash in its column', async ({ page }) => {
  await page.goto('/');
  const row = page.getByRole('row').filter({ hasText: 'mailer' });
  await expect(row.locator('[data-title="CPU"]')).toHaveText('–');
  await expect(row.locator('[data-title="Live heap"]')).toContainText('MB');
});

test('a service that has ended says so and comes last', async ({ page }) => {
  await page.goto('/');
  const row = page.locator('.services tbody tr').last();
  await expect(row).toContainText('nightly');
  await expect(row.locator('[data-title="Live heap"]')).toHaveText('ended');
});

test('200,000 nodes are drawn, searched, zoomed and taken apart', async ({ page }) => {
  await openService(page, 'paused=1&view=both', 'giant');
  await page.getByRole('searchbox').fill('Method77');
  await expect(page.locator('.searchbox [role=status]')).toHaveText(/% in \d+ functions$/);
  await page.getByRole('searchbox').fill('');
  await page.getByRole('application').click({ position: { x: 60, y: 19 * 2 + 8 } });
  await expect(page.locator('.crumbs button')).toHaveCount(3);
  await rows(page).first().click();
  await expect(page.getByRole('application', { name: /^Callers of/ })).toBeVisible();
});

test('a full disk is told on every page', async ({ page }) => {
  const health = await (await page.request.get('/api/health')).json();
  health.store.writing = false;
  health.store.trouble = 'The disk is full: profiles are not kept until there is room.';
  await page.route('**/api/health', (route) => route.fulfill({ json: health }));
  await page.goto('/');
  await expect(page.getByRole('alert')).toContainText('The disk is full');
  await page.goto(`/#/s/checkout?type=${CPU}`);
  await expect(page.getByRole('alert')).toContainText('The disk is full');
});

test('what cannot be profiled is named with the reason and what helps', async ({ page }) => {
  await page.goto('/');
  const group = page.getByRole('row').filter({ hasText: 'Run sonde as root' });
  await expect(group).toContainText('dockerd');
  await expect(group).toContainText('containerd');
  await page.getByRole('searchbox').fill('restic');
  await expect(page.getByRole('row').filter({ hasText: '--go-heap force' })).toBeVisible();
  await expect(group).toHaveCount(0);
});
