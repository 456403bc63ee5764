import { defineConfig } from '@playwright/test';

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync';

export default defineConfig({
  testDir: '.',
  // What runs against a real sonde, and what needs a machine that is not here.
  projects: process.env.BENCH
    ? [{ name: 'bench', testMatch: 'bench.ts', use: { baseURL: process.env.MOCK_URL } }]
    : process.env.SHOTS
    ? [{ name: 'shots', testMatch: 'shots.ts', use: { baseURL: process.env.MOCK_URL } }]
    : [
        // First: meanwhile sonde collects what its own tests look at.
        { name: 'mock', testMatch: ['mock.spec.ts', 'flame.spec.ts', 'function.spec.ts'], use: { baseURL: process.env.MOCK_URL } },
        { name: 'busy', testMatch: 'busy.spec.ts', use: { baseURL: process.env.MANY_URL } },
        { name: 'sonde', testMatch: 'ui.spec.ts', use: { baseURL: process.env.BASE_URL } },
      ],
  outputDir: process.env.OUT_DIR ?? '../../ui/test-out',
  reporter: './reporter.ts',
  workers: 1,
  // For what hangs; a machine may be fifty times slower than this one is when it is quiet.
  timeout: 900000,
  expect: { timeout: 180000 },
  use: {
    viewport: { width: 1280, height: 720 },
    timezoneId: 'Europe/Berlin',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: flags.split(' '),
    },
  },
});
