/*
 * What no machine of a test has: all types of profiles at once, programs that were killed because memory
 * ran out, 200,000 nodes, a full disk.
 */
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { dragTimeline, expect, hash, rows, test } from './page';

const CPU = 'cpu:cpu:nanoseconds';

/* The last hour of a service of the mock; what the environment names is on the real server. */
async function openMock(page: Page, query = '', service = 'checkout'): Promise<void> {
  await page.goto(`/#/s/${service}?paused=1${query && `&${query}`}`);
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
}

test('a service leads straight to each of its profiles, in the unit of each', async ({ page }) => {
  await page.goto('/');
  for (const title of ['Service', 'Runtime', 'CPU', 'Memory', 'Processes', 'Profiles'])
    await expect(page.getByRole('columnheader', { name: title })).toBeVisible();
  await expect(page.locator('.srow').first()).toContainText('search');
  await expect(page.getByRole('link', { name: /^checkout, CPU: 0\.\d\d\scores$/ })).toBeVisible();
  await expect(page.getByRole('link', { name: /^checkout, memory: \d+\sMB/ })).toBeVisible();
  const row = page.getByRole('row').filter({ hasText: 'checkout' });
  await expect(row.locator('.badge')).toHaveText('Go 1.27');
  await expect(row.locator('.pill')).toHaveText([/^CPU/, /^Heap/, /^Alloc/, /^Goroutines/, /^Block/, /^Mutex/]);
  await row.getByRole('link', { name: 'Mutex of checkout' }).click();
  await expect.poll(() => hash(page)).toContain('type=go_mutex:delay:nanoseconds');
  await expect(page.getByRole('button', { name: /^Mutex delay.*\sms\/s$/ })).toHaveAttribute('aria-pressed', 'true');
  // A window holds time, a comparison cores.
  await page.getByRole('button', { name: /^CPU/ }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(/\s(s|min)/);
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(/\d\scores/);
});

test('what a service does not have is no dash', async ({ page }) => {
  await page.goto('/');
  const row = page.getByRole('row').filter({ hasText: 'mailer' });
  await expect(row.locator('.c-memory')).toContainText('MB');
  await expect(row.locator('.c-cpu')).toBeEmpty();
  await expect(page.getByRole('table', { name: 'Services' })).not.toContainText('–');
});

test('a service that has ended says so', async ({ page }) => {
  await page.goto('/');
  const row = page.getByRole('row').filter({ hasText: 'nightly' });
  await expect(row).toContainText(/last seen [\d:-]+/);
  await expect(row.locator('.c-processes')).toBeEmpty();
});

test('a change is marked where a row does what it usually does not, and only there', async ({ page }) => {
  await page.goto('/');
  const leak = page.getByRole('row').filter({ hasText: 'checkout' });
  await expect(leak.locator('.c-memory .changed')).toHaveText(/rose from \d+(\.\d)?\sMB$/);
  await expect(leak.locator('.c-cpu .changed')).toHaveCount(0);
  await expect(page.locator('.changed')).toHaveCount(1);
});

test('a gap is drawn as a gap, and what came late is marked', async ({ page }) => {
  await openMock(page, `type=${CPU}`);
  const card = page.getByRole('button', { name: /^CPU/ }).first();
  await expect(card.locator('.spark polyline')).toHaveCount(2);
  await expect(page.locator('.timeline .band.late')).toBeVisible();
  await expect(page.locator('.latenote')).toContainText(/came late: they are spread evenly/);
  // Heaps were collected all the time.
  await openMock(page, 'type=go_heap:inuse_space:bytes');
  await expect(page.locator('.timeline .band.late')).toHaveCount(0);
  await expect(page.getByRole('button', { name: /^Live heap/ }).first().locator('.spark polyline')).toHaveCount(1);
});

test('what is missing because it is damaged is said', async ({ page }) => {
  await openMock(page, 'type=go_heap:inuse_objects:count');
  await expect(page.locator('.latenote')).toContainText('damaged on disk and missing here');
  await openMock(page, 'type=go_heap:inuse_space:bytes');
  await expect(page.locator('.timeline canvas, .timeline svg').first()).toBeVisible();
  await expect(page.locator('.latenote')).toHaveCount(0);
});

test('200,000 nodes are drawn, searched, zoomed and taken apart', async ({ page }) => {
  await openMock(page, 'view=both', 'giant');
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

test('what does not work on the machine is told on every page with its reason and remedy', async ({ page }) => {
  const health = await (await page.request.get('/api/health')).json();
  await page.goto('/');
  await expect(page.locator('.health')).toContainText('stores');
  await expect(page.locator('.missing')).toHaveCount(0);
  Object.assign(health.features.find((f: { feature: string }) => f.feature === 'oom-kills'), {
    state: 'off', cause: 'privilege', reason: 'bpf() is not permitted without CAP_BPF', remedy: 'run as root',
  });
  await page.route('**/api/health', (route) => route.fulfill({ json: health }));
  for (const address of ['/', `/#/s/checkout?type=${CPU}`]) {
    await page.goto(address);
    await page.reload();
    const line = page.locator('.health .missing');
    await expect(line.locator('summary')).toHaveText('OOM kill snapshots: off');
    await expect(line.getByRole('table')).toBeHidden();
    await line.locator('summary').click();
    const row = line.getByRole('row').filter({ hasText: 'OOM kill snapshots' });
    await expect(row).toContainText('bpf() is not permitted without CAP_BPF');
    await expect(row.locator('code')).toHaveText('run as root');
  }
  const found = await new AxeBuilder({ page }).include('.health').analyze();
  expect(found.violations.map((v) => v.id)).toEqual([]);
});

test('what cannot be profiled is named with the reason and what helps', async ({ page }) => {
  await page.goto('/');
  const group = page.getByRole('row').filter({ hasText: 'run sonde as root' });
  await expect(page.getByRole('heading', { name: 'Not profiled 17' })).toBeVisible();
  await expect(group).toBeHidden();
  await page.getByText('Not profiled').click();
  await expect(group).toContainText('dockerd');
  await expect(group).toContainText('containerd');
  // What most programs leave off is said where it is asked for.
  await expect(page.getByText('block profiling is off')).toHaveCount(0);
  await page.getByRole('searchbox').fill('restic');
  await expect(page.getByRole('row').filter({ hasText: '--go-heap force' })).toBeVisible();
  await expect(group).toHaveCount(0);
});

test('types are grouped, and one thing is measured in several ways', async ({ page }) => {
  await openMock(page);
  const picker = page.getByRole('group', { name: 'Profile type' });
  for (const [group, cards] of [['CPU', 1], ['Memory', 2], ['Goroutines', 1], ['Blocking', 1], ['Mutexes', 1]] as const)
    await expect(picker.getByRole('group', { name: group }).getByRole('button')).toHaveCount(cards);
  await expect(picker.getByText(/runtime|oom/i)).toHaveCount(0);
  await picker.getByRole('button', { name: /^Goroutines/ }).click();
  await expect(page.locator('.tbody')).toContainText('runtime.gopark');
  const states = page.getByRole('group', { name: 'Variant' });
  await states.getByRole('button', { name: 'In syscalls' }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText('syscall.write');
  await expect(picker.getByRole('button', { name: /^Goroutines in syscalls/ })).toHaveAttribute('aria-pressed', 'true');
  await expect.poll(() => hash(page)).toContain('type=go_goroutine:syscall:count');
  // Curves of the runtime are no flame graph, also where somebody writes it into the address.
  await openMock(page, 'type=go_runtime:heap_live:bytes');
  await expect(picker.getByRole('button', { name: /^Live heap/ })).toHaveAttribute('aria-pressed', 'true');
});

test('types are called what /api/types calls them, and one that it lacks is shown all the same', async ({ page }) => {
  await page.route('**/api/types', async (route) => {
    const registry = await (await route.fetch()).json();
    const types = registry.types.filter((t: { type: string }) => !t.type.startsWith('go_mutex:'));
    const changed = types.map((t: { type: string }) => (t.type === 'go_heap:inuse_space:bytes' ? { ...t, title: 'Kept', help: 'What is kept.' } : t));
    await route.fulfill({ json: { ...registry, types: changed } });
  });
  await openMock(page);
  const picker = page.getByRole('group', { name: 'Profile type' });
  await expect(picker.getByRole('button', { name: /^Kept/ })).toHaveAttribute('title', 'What is kept.');
  await expect(picker.getByRole('group', { name: 'Other' }).getByRole('button')).toHaveText([/^Go mutex contentions/, /^Go mutex delay/]);
});

test('the page asks for the registry once, and again where nobody answered', async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  let asked = 0;
  await page.clock.install();
  await page.route('**/api/types', (route) => (asked++ ? route.continue() : route.fulfill({ status: 503, json: { error: 'busy' } })));
  await page.goto('/#/s/checkout');
  const heap = page.getByRole('button', { name: /^Go heap inuse space/ });
  await expect(heap).toBeVisible();
  await page.clock.fastForward(16e3);
  await expect(page.getByRole('button', { name: /^Live heap/ })).toBeVisible();
  await expect(heap).toHaveCount(0);
  for (let i = 0; i < 3; i++) {
    const next = page.waitForResponse(/api\/health/);
    await page.clock.fastForward(16e3);
    await next;
  }
  expect(asked).toBe(2);
});

for (const [type, where, unit] of [
  ['go_goroutine:goroutine:count', 'runtime.gopark', /^[+−][\d.]+$/],
  ['go_block:delay:nanoseconds', '', /\/s$/],
  ['go_mutex:contentions:count', '', /\/s$/],
] as const)
  test(`two windows of ${type} are compared`, async ({ page }) => {
    await openMock(page, `type=${type}`);
    await dragTimeline(page, 0.75, 0.98);
    await page.getByRole('button', { name: 'Compare with preceding' }).click();
    const first = page.locator('.tbody [aria-rowindex="2"]');
    await expect(first).toContainText(where);
    await expect(first.locator('.worse, .better').first()).toHaveText(unit);
  });

test('the Go runtime is shown on demand, in one request, with the cursor and the windows of the timeline', async ({ page }) => {
  let asked = 0;
  page.on('request', (r) => r.url().includes('go_runtime') && asked++);
  await openMock(page);
  const head = page.getByRole('button', { name: 'Go runtime' });
  await expect(page.locator('.runtimehead')).toContainText(/RSS .* · heap .* of .* goal · .* goroutines/);
  expect(asked).toBe(0);
  await page.keyboard.press('g');
  await expect(head).toHaveAttribute('aria-expanded', 'true');
  const charts = page.locator('.runtime figure');
  await expect(charts).toHaveCount(5);
  expect(asked).toBe(1);
  for (const text of [/^Memory: RSS .*, runtime .*, live heap .*, goal .*, limit 420\sMB/, /^Goroutines: all .*, waiting .*, syscall/, /^GC pauses: .*s\/s$/, /^GC CPU: .*%$/, /^Allocations: .*MB\/s$/])
    await expect(page.getByRole('figure', { name: text })).toBeVisible();
  // The cursor of one is that of all.
  const live = charts.first().locator('b').first();
  const last = await live.textContent();
  const over = (await page.locator('.timeline .u-over').boundingBox())!;
  await page.mouse.move(over.x + over.width * 0.1, over.y + 30);
  await expect(live).not.toHaveText(last!);
  await page.mouse.move(5, 5);
  await expect(live).toHaveText(last!);
  // A drag on any of them selects.
  const small = (await charts.nth(1).locator('.u-over').boundingBox())!;
  await page.mouse.move(small.x + small.width * 0.5, small.y + 20);
  await page.mouse.down();
  await page.mouse.move(small.x + small.width * 0.8, small.y + 20);
  await page.mouse.up();
  await expect.poll(() => hash(page)).toContain('sel=');
  await expect(page.locator('.band.b:visible')).toHaveCount(6);
  await page.reload();
  await expect(head).toHaveAttribute('aria-expanded', 'true');
  await head.click();
  await expect(charts).toHaveCount(0);
});

test('a kill for want of memory is told on the overview, and its last heap is one click away', async ({ page }) => {
  await page.goto('/');
  const row = page.getByRole('row').filter({ hasText: 'importer' });
  await expect(row.locator('.oomnote.kill')).toHaveText(/^OOM-killed at [\d: -]+, 2 times$/);
  await expect(page.getByRole('row').filter({ hasText: 'billing' }).locator('.oomnote.near')).toHaveText(/^Near its memory limit at/);
  await row.getByRole('link', { name: 'importer', exact: true }).click();
  const banner = page.getByRole('status', { name: 'Out of memory' });
  await expect(banner).toHaveText(/OOM-killed at [\d: -]+, 1\.90\sGB; 9\d\.\d% in main\.appendToCache/);
  await expect(page.locator('.timeline .mark.kill')).toHaveCount(2);
  await expect(page.locator('.timeline .mark.near')).toHaveCount(1);
  await banner.getByRole('button', { name: 'Show last heap' }).click();
  await expect.poll(() => hash(page)).toMatch(/type=go_oom:inuse_space:bytes&sel=\d+-\d+&label=process.pid%3D5022/);
  const sel = /sel=(\d+)-(\d+)/.exec(await hash(page))!;
  expect(Number(sel[2]) - Number(sel[1])).toBe(1);
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText('main.appendToCache');
  await expect(page.locator('.crumbs')).toContainText(/1\.8\d\sGB/);
  await page.getByRole('group', { name: 'Variant' }).getByRole('button', { name: 'Goroutines' }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText('runtime.gopark');
  await page.getByRole('button', { name: 'Back to profiles' }).click();
  await expect(page.getByRole('button', { name: /^Live heap/ })).toHaveAttribute('aria-pressed', 'true');
  await banner.getByRole('button', { name: '2 more' }).click();
  await expect(banner.getByRole('listitem')).toHaveText([/^!Near its memory limit/, /pid 4711, last snapshot before the kill/]);
  await page.locator('.timeline .mark.near').click();
  await expect.poll(() => hash(page)).toContain('type=go_oom');
  await expect(page.locator('.crumbs')).toContainText(/1\.7\d\sGB/);
});

test('at phone width the runtime and the banner fit', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await openMock(page, 'type=go_goroutine:goroutine:count');
  await page.getByRole('button', { name: 'Go runtime' }).click();
  await expect(page.locator('.runtime figure')).toHaveCount(5);
  expect(await wide()).toBeLessThanOrEqual(0);
  await openMock(page, '', 'importer');
  await expect(page.getByRole('status', { name: 'Out of memory' })).toBeVisible();
  expect(await wide()).toBeLessThanOrEqual(0);
});

for (const scheme of ['dark', 'light'] as const)
  test(`axe finds nothing in what is new, in the ${scheme} theme`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    const check = async (what: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`)).toEqual([]);
    };
    await page.goto('/');
    await expect(page.locator('.oomnote.kill')).toBeVisible();
    await check('overview');
    await openMock(page);
    await page.keyboard.press('g');
    await expect(page.locator('.runtime figure')).toHaveCount(5);
    await check('runtime');
    await openMock(page, '', 'importer');
    await page.getByRole('button', { name: '2 more' }).click();
    await check('events');
  });
