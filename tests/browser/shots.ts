/*
 * Pictures of every screen: light and dark, desktop and phone. They are to be looked at; SHOTS names the
 * folder that they go to.
 */
import type { Page } from '@playwright/test';
import { test } from './page';

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const MANY = process.env.MANY_URL!;

interface Screen {
  name: string;
  address: string;
  server?: string;
  act?(page: Page): Promise<void>;
}

const SCREENS: Screen[] = [
  { name: 'overview', address: '/#/' },
  { name: 'overview-1000', address: '/#/', server: MANY },
  { name: 'overview-1000-24h', address: '/#/?range=24h', server: MANY },
  {
    name: 'overview-1000-folded', address: '/#/?sort=name+down', server: MANY,
    act: async (page) => {
      await page.getByRole('button', { name: /short-lived program/ }).first().click();
      await page.getByRole('button', { name: /short-lived program/ }).first().scrollIntoViewIfNeeded();
    },
  },
  { name: 'overview-1000-search', address: '/#/?filter=warehouse', server: MANY },
  {
    name: 'overview-end', address: '/#/',
    act: async (page) => {
      for (const s of await page.locator('details > summary').all()) await s.click();
      await page.locator('main').evaluate((m) => m.scrollTo(0, 1e6));
    },
  },
  {
    name: 'first-visit', address: '/#/',
    act: async (page) => {
      const { now } = await (await page.request.get('/api/health')).json();
      await page.route('**/api/overview?*', (route) => route.fulfill({ json: {
        from: now - 60e3, to: now, step_ms: 60e3, next: now, cpus: 8, memory_kib: 16777216, covered_ms: [0], machine: [0, [], []], types: [], services: [], rows: [], damaged: 0 } }));
      await page.route('**/api/health', async (route) => {
        const health = await (await route.fetch()).json();
        await route.fulfill({ json: { ...health, started: health.now - 9e3, uptime_ms: 9e3, intervals: 0, cpu_samples: 0, collections: 0, targets: 214, profiled: 0 } });
      });
      await page.reload();
    },
  },
  {
    name: 'away', address: '/#/',
    act: async (page) => {
      await page.route('**/api/**', (route) => route.abort());
      await page.getByRole('searchbox').fill('c'); // something is on screen before it goes
      await page.waitForTimeout(16e3);
    },
  },
  { name: 'service', address: '/#/s/checkout?paused=1' },
  { name: 'service-cpu', address: '/#/s/checkout?paused=1&type=cpu:cpu:nanoseconds&view=flame' },
  { name: 'comparison', address: '/#/s/checkout?paused=1&type=go_heap:inuse_space:bytes&base=prev' },
  { name: 'sandwich', address: '/#/s/checkout?paused=1&type=cpu:cpu:nanoseconds&view=sandwich&fn=encoding/json.(*encodeState).marshal' },
  { name: 'oom', address: '/#/s/importer?paused=1' },
  { name: 'turned-off', address: '/#/s/gateway?paused=1&type=go_block:delay:nanoseconds' },
  { name: 'no-such-service', address: '/#/s/never-seen?paused=1' },
  { name: 'help', address: '/#/', act: (page) => page.keyboard.press('?') },
];

for (const [size, viewport] of Object.entries(SIZES))
  for (const scheme of ['light', 'dark'] as const)
    for (const { name, address, server, act } of SCREENS)
      test(`${name}-${size}-${scheme}`, async ({ browser, baseURL }) => {
        const context = await browser.newContext({ baseURL: server ?? baseURL, viewport, colorScheme: scheme, timezoneId: 'Europe/Berlin' });
        const page = await context.newPage();
        page.setDefaultTimeout(60e3);
        await page.goto(address);
        await page.waitForLoadState('networkidle');
        await act?.(page).catch(() => console.log(`${name}: what it should show is not there`));
        await page.waitForLoadState('networkidle');
        await page.screenshot({ path: `${process.env.SHOTS}/${name}-${size}-${scheme}.png` });
        await context.close();
      });
