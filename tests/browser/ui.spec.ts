import { AxeBuilder } from '@axe-core/playwright';
import { DRAG, dragTimeline, expect, hash, LEAK, openService, RANGE, rows, SERVICE, serviceUrl, test, waitForData } from './page';

const last = (name: string) => name.split('/').pop()!;

test.beforeAll(waitForData);

test('the leaking function is found by dragging a window and pressing compare', async ({ page }) => {
  await page.goto(`/#/?range=${RANGE}`);
  await page.getByRole('link', { name: SERVICE, exact: true }).click();
  await page.getByRole('button', { name: /^Live heap/ }).click();
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
  await dragTimeline(page, ...DRAG);
  await expect(page.locator('.band.b')).toBeVisible();
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  const first = page.locator('.tbody [aria-rowindex="2"]');
  await expect(first).toContainText(last(LEAK));
  await expect(first.locator('.worse').first()).toContainText('+');
  await expect(page.locator('.band.a')).toBeVisible();
  await expect.poll(() => hash(page)).toContain('base=prev');
});

test('any window is compared with any other by two drags', async ({ page }) => {
  await openService(page, 'type=go_heap:inuse_space:bytes');
  await page.getByRole('button', { name: 'Compare A and B' }).click();
  await dragTimeline(page, DRAG[0] - 0.25, DRAG[0] - 0.05);
  await expect.poll(() => hash(page)).toMatch(/base=\d+-\d+/);
  await dragTimeline(page, ...DRAG);
  await expect.poll(() => hash(page)).toMatch(/sel=\d+-\d+/);
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(last(LEAK));
  for (const title of ['Before', 'After', 'Change', 'Share'])
    await expect(page.getByRole('columnheader', { name: title })).toBeVisible();
  await page.getByRole('button', { name: 'share', exact: true }).click();
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText('%');
  await page.getByRole('button', { name: 'colour-blind palette' }).click();
  await expect(page.locator('html')).toHaveAttribute('data-palette', 'blind');
  await page.getByRole('button', { name: 'Stop comparing' }).click();
  await expect.poll(() => hash(page)).not.toContain('base=');
});

test('a range that is older than the store is compared with its own first half', async ({ page }) => {
  const { now, store } = await (await page.request.get('/api/health')).json();
  const hours = Math.ceil((now - store.oldest) / 3600e3) + 1;
  await page.goto(`/#/s/${SERVICE}?range=${hours}h`);
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect.poll(() => hash(page)).toMatch(/sel=\d+-\d+&base=prev/);
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText(last(LEAK));
  await expect(page.getByText('Nothing was recorded in A')).toHaveCount(0);
});

test('a double click on the timeline resets the window', async ({ page }) => {
  await openService(page);
  await dragTimeline(page, 0.5, 0.9);
  await expect.poll(() => hash(page)).toContain('sel=');
  await page.locator('.timeline .u-over').dblclick();
  await expect.poll(() => hash(page)).not.toContain('sel=');
});

test('search takes text and regular expressions and says the matched share', async ({ page }) => {
  await openService(page);
  const box = page.getByRole('searchbox');
  const status = page.locator('.searchbox [role=status]');
  await box.fill(last(LEAK).toUpperCase());
  await expect(status).toHaveText(/% in 1 function$/);
  await expect(rows(page)).toHaveCount(1);
  await box.fill(`/${last(LEAK).split('.').pop()}$/`);
  await expect(status).toHaveText(/% in \d+ functions?$/);
  await box.fill('/(/');
  await expect(status).toHaveText('invalid regular expression');
  await box.fill('no such function anywhere');
  await expect(page.getByText('No function matches')).toBeVisible();
});

test('the sandwich shows callers and callees, and back leads back', async ({ page }) => {
  await openService(page);
  await page.getByRole('searchbox').fill(last(LEAK));
  await rows(page).first().click();
  await expect(page.getByRole('application', { name: /^Callers of/ })).toBeVisible();
  await expect(page.getByRole('application', { name: /^Callees of/ })).toBeVisible();
  await expect(page.locator('.details h2')).toContainText(last(LEAK));
  await expect(page.getByRole('region', { name: 'Lines' }).locator('tbody tr').first()).toBeVisible();
  await expect.poll(() => hash(page)).toContain('view=sandwich');
  await page.goBack();
  await expect(page.getByRole('application', { name: /^Flame graph of/ })).toBeVisible();
  await expect.poll(() => hash(page)).not.toContain('view=');
});

test('a link carries the whole state, and back and forward work', async ({ page, context }) => {
  await openService(page, 'type=go_heap:inuse_space:bytes');
  await dragTimeline(page, ...DRAG);
  await page.keyboard.press('d');
  await page.keyboard.press('1');
  await expect(page).toHaveURL(/sel=.*base=prev.*view=table/);
  const shared = page.url();
  const other = await context.newPage();
  await other.goto(shared);
  await expect(other.locator('.tbody [aria-rowindex="2"]')).toContainText(last(LEAK));
  await expect(other.locator('canvas[role=application]')).toHaveCount(0);
  await page.goBack();
  await expect.poll(() => hash(page)).not.toContain('view=');
  await page.goBack();
  await expect.poll(() => hash(page)).not.toContain('base=');
  await page.goForward();
  await expect.poll(() => hash(page)).toContain('base=prev');
});

test('a frame zooms by click, its link zooms too, and Escape resets', async ({ page, context }) => {
  await openService(page, 'view=flame');
  const canvas = page.getByRole('application');
  await canvas.click({ position: { x: 60, y: 19 + 8 } });
  await expect.poll(() => hash(page)).toContain('zoom=');
  const crumb = await page.locator('.crumbs [aria-current]').textContent();
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(other.locator('.crumbs [aria-current]')).toHaveText(crumb!);
  await canvas.focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => hash(page)).not.toContain('zoom=');
});

test('stacks are hidden, focused and collapsed from the menu', async ({ page }) => {
  await openService(page, 'view=both');
  const menu = page.getByRole('menu');
  const row = rows(page).filter({ hasText: last(LEAK) }).first();
  for (const [item, word] of [['Hide stacks', 'without'], ['Focus', 'only'], ['Collapse', 'collapsed']] as const) {
    await row.click({ button: 'right' });
    await menu.getByRole('menuitem', { name: item }).click();
    await expect(page.locator('.chip')).toContainText(word);
    await expect(page.locator('.panes')).toBeVisible();
    await page.locator('.chip').click();
    await expect(page.locator('.chip')).toHaveCount(0);
  }
});

test('everything is reached with the keyboard alone', async ({ page }) => {
  await page.goto(`/#/?range=${RANGE}`);
  await expect(page.getByRole('link', { name: SERVICE, exact: true })).toBeVisible();
  await page.keyboard.press('/');
  await page.keyboard.type(SERVICE);
  await page.keyboard.press('Escape');
  const link = page.getByRole('link', { name: SERVICE, exact: true });
  for (let i = 0; i < 30 && !(await link.evaluate((e) => e === document.activeElement)); i++)
    await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
  const timeline = page.getByRole('group', { name: /over time/ });
  for (let i = 0; i < 30 && !(await timeline.evaluate((e) => e === document.activeElement)); i++)
    await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => hash(page)).toContain('sel=');
  await page.keyboard.press('d');
  await expect.poll(() => hash(page)).toContain('base=prev');
  await page.keyboard.press('d');
  await page.keyboard.press('3');
  const canvas = page.getByRole('application');
  await expect(canvas).toBeVisible();
  for (let i = 0; i < 40 && !(await canvas.evaluate((e) => e === document.activeElement)); i++)
    await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await expect(page.locator('.flame [aria-live]')).toContainText('level 2');
  await page.keyboard.press('m');
  await expect(page.getByRole('menuitem').first()).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(canvas).toBeFocused();
  await page.keyboard.press('s');
  await expect.poll(() => hash(page)).toContain('view=sandwich');
  await page.keyboard.press('1');
  await rows(page).first().focus();
  await page.keyboard.press('ArrowDown');
  await expect(rows(page).nth(1)).toBeFocused();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
  await page.keyboard.press('o');
  await expect(page.getByRole('heading', { name: /^Services/, level: 2 })).toBeVisible();
});

test('at phone width nothing is cut off and everything works', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`/#/?range=${RANGE}`);
  const link = page.getByRole('link', { name: SERVICE, exact: true });
  await expect(link).toBeVisible();
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(await wide()).toBeLessThanOrEqual(0);
  await link.click();
  await expect(page.getByRole('application')).toBeVisible();
  expect(await wide()).toBeLessThanOrEqual(0);
  await page.getByRole('button', { name: 'Table' }).click();
  await expect(rows(page).first()).toBeVisible();
  await rows(page).first().click();
  await expect(page.getByRole('application', { name: /^Callers/ })).toBeVisible();
  expect(await wide()).toBeLessThanOrEqual(0);
});

for (const scheme of ['dark', 'light'] as const)
  test(`axe finds nothing in the ${scheme} theme`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    const check = async (what: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map((v) => `${what}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`)).toEqual([]);
    };
    await page.goto(`/#/?range=${RANGE}`);
    await expect(page.getByRole('link', { name: SERVICE, exact: true })).toBeVisible();
    await check('overview');
    // What is late is dimmed: live it would be at any time.
    await openService(page, 'type=go_heap:inuse_space:bytes&paused=1');
    await check('service');
    await page.keyboard.press('d');
    await expect(page.getByRole('columnheader', { name: 'Share' })).toBeVisible();
    await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
    await check('comparison');
    await page.keyboard.press('?');
    await check('help');
  });

test('the process filter narrows the profile', async ({ page }) => {
  await openService(page, 'paused=1');
  await dragTimeline(page, ...DRAG);
  await expect(page.locator('.panes[aria-busy="false"]')).toBeVisible();
  const whole = await page.locator('.crumbs').textContent();
  await page.getByRole('button', { name: 'Processes and labels' }).click();
  const box = page.getByRole('group', { name: 'process', exact: true }).getByRole('checkbox').first();
  await box.check();
  await expect.poll(() => hash(page)).toContain('label=process.pid%3D');
  await expect(page.locator('.crumbs')).not.toHaveText(whole!);
});

test('goroutines are shown by state, and two windows of them compared', async ({ page }) => {
  await openService(page);
  await page.getByRole('button', { name: /^Goroutines/ }).click();
  await expect(page.locator('.tbody')).toContainText('runtime.gopark');
  await page.getByRole('group', { name: 'Variant' }).getByRole('button', { name: 'Waiting' }).click();
  await expect.poll(() => hash(page)).toContain('type=go_goroutine:waiting:count');
  await expect(page.locator('.tbody [aria-rowindex="2"]')).toContainText('runtime.gopark');
  await dragTimeline(page, ...DRAG);
  await page.getByRole('button', { name: 'Compare with preceding' }).click();
  await expect(page.getByRole('columnheader', { name: 'Change' })).toBeVisible();
  // Exactly: there may be runtime.goparkunlock.
  await expect(rows(page).filter({ has: page.getByText('runtime.gopark', { exact: true }) })).toHaveCount(1);
});

test('the Go runtime is read, and what the program does not record is said to be off', async ({ page }) => {
  await openService(page);
  await page.getByRole('button', { name: 'Go runtime' }).click();
  for (const name of [/^Memory: RSS .*B, runtime .*B, live heap .*B, goal .*B/, /^Goroutines: all \d/, /^GC pauses: paused/, /^GC CPU: share .*%/, /^Allocations: rate .*B\/s/])
    await expect(page.getByRole('figure', { name })).toBeVisible();
  await page.getByRole('button', { name: /^Blocking/ }).click();
  await expect(page.getByText(/or run sonde block \d+ --force-block/)).toBeVisible();
});

test('processes are told apart, folded frames and modules too', async ({ page }) => {
  await openService(page, 'view=both&paused=1&type=go_heap:inuse_space:bytes');
  const total = () => page.locator('.crumbs .dim').textContent();
  const whole = await total();
  await expect(page.getByRole('group', { name: 'Legend' }).getByRole('button', { name: /^Go [\d.]+%$/ })).toBeVisible();
  // Folded, it has only what it allocates itself; its callees have moved up.
  const main = rows(page).filter({ has: page.locator('[title="runtime.main"]') }).locator('.num');
  const folded = await main.allTextContents();
  await page.getByRole('button', { name: 'Fold start-up' }).click();
  await expect(main.first()).toBeVisible();
  expect(await main.allTextContents()).not.toEqual(folded);
  await page.getByLabel('Group by label').selectOption({ label: 'by process' });
  await expect(rows(page).filter({ hasText: 'process.pid=' })).toHaveCount(2);
  expect(await total()).toBe(whole);
  await page.getByRole('button', { name: 'Image' }).click();
  const waiting = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: /^SVG/ }).click();
  expect((await waiting).suggestedFilename()).toMatch(/\.svg$/);
});

test('the pprof link covers the window', async ({ page }) => {
  await openService(page);
  await dragTimeline(page, ...DRAG);
  await expect.poll(() => hash(page)).toContain('sel=');
  const sel = /sel=(\d+)-(\d+)/.exec(await hash(page))!;
  const link = page.getByRole('link', { name: 'pprof' });
  await expect(link).toHaveAttribute('href', new RegExp(`from=${sel[1]}&to=${sel[2]}`));
  const download = page.waitForEvent('download');
  await link.click();
  expect(await (await download).failure()).toBeNull();
});

test('an error says what to do and can be tried again', async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  let broken = true;
  await page.route('**/api/flame?*', (route) =>
    broken ? route.fulfill({ status: 503, json: { error: 'The store is busy; try again in a moment.' } }) : route.continue(),
  );
  await page.goto(serviceUrl());
  await expect(page.getByRole('alert').filter({ hasText: 'The store is busy' })).toBeVisible();
  const again = page.getByRole('button', { name: 'Try again' });
  await expect(again).toBeVisible();
  broken = false;
  // The page also asks again by itself, each interval: then the button is gone already.
  await again.evaluateAll((all) => all.forEach((button) => (button as HTMLElement).click()));
  await expect(page.getByRole('application')).toBeVisible();
  await expect(page.getByText('The store is busy')).toHaveCount(0);
});

test('a server that went away is told from an empty one', async ({ page, watch }) => {
  watch.expected.push(/Failed to load resource/);
  await page.route('**/api/**', (route) => route.abort());
  await page.goto('/');
  await expect(page.getByRole('alert').first()).toContainText('sonde run');
});

test('without services the page says how to get some', async ({ page }) => {
  const nothing = { from: 0, to: 60e3, step_ms: 60e3, next: 0, cpus: 2, memory_kib: 1e6, covered_ms: [0], machine: [0, [], []], types: [], services: [], rows: [], damaged: 0 };
  await page.route('**/api/overview?*', (route) => route.fulfill({ json: nothing }));
  await page.goto('/');
  await expect(page.locator('.empty h2')).toBeVisible();
  await page.goto('/#/s/never-seen');
  await expect(page.getByText('never-seen has no profiles in this range')).toBeVisible();
});

test('slow answers show progress, and what is no longer wanted is cancelled', async ({ page }) => {
  await openService(page);
  let cancelled = 0;
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  page.on('requestfailed', (r) => r.url().includes('/api/flame') && cancelled++);
  await page.route('**/api/flame?*', async (route) => {
    await held;
    await route.continue().catch(() => {});
  });
  await dragTimeline(page, 0.4, 0.6);
  await expect(page.locator('.progress.on')).toBeVisible();
  await dragTimeline(page, 0.5, 0.9);
  await expect.poll(() => cancelled).toBeGreaterThan(0);
  release();
  await expect(page.locator('.progress.on')).toHaveCount(0);
});

test('live moves on by itself and pauses', async ({ page }) => {
  const health = await (await page.request.get('/api/health')).json();
  await page.clock.install();
  await openService(page);
  let asked = 0;
  page.on('request', (r) => r.url().includes('/api/series') && asked++);
  await page.clock.runFor(health.interval_ms + 1500);
  await expect.poll(() => asked).toBeGreaterThan(0);
  await page.getByRole('button', { name: 'Live', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Paused' })).toBeVisible();
  // What was under way may still ask; then nothing does, however many intervals pass.
  let then = -1;
  for (let tries = 0; tries < 10 && then !== asked; tries++) {
    then = asked;
    await page.clock.runFor(3 * health.interval_ms);
    await page.waitForTimeout(300);
  }
  expect(asked).toBe(then);
});

test('live waits for a server that is slower than its interval', async ({ page }) => {
  const { interval_ms } = await (await page.request.get('/api/health')).json();
  let asked = 0;
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.clock.install();
  await page.route('**/api/overview?*', async (route) => {
    asked++;
    await held;
    await route.continue().catch(() => {});
  });
  await page.goto(`/#/?range=${RANGE}`);
  await expect.poll(() => asked).toBe(1);
  await page.clock.runFor(5 * interval_ms);
  expect(asked).toBe(1);
  release();
  await expect(page.getByRole('link', { name: SERVICE, exact: true })).toBeVisible();
});

test('the time zone is shown and can be UTC', async ({ page }) => {
  await openService(page, 'paused=1');
  const text = page.locator('.windowtext');
  const local = await text.textContent();
  await expect(page.getByRole('button', { name: /Time zone Europe\/Berlin \(UTC\+0[12]:00\)/ })).toBeVisible();
  await page.keyboard.press('u');
  await expect(page.getByRole('button', { name: 'Time zone UTC' })).toBeVisible();
  await expect(text).not.toHaveText(local!);
});

test('the theme follows the system until it is chosen', async ({ page }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto('/');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.keyboard.press('t');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
});
