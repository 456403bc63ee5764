import { defineConfig } from '@playwright/test';

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync';

export default defineConfig({
  testDir: '.',
  testMatch: process.env.BENCH ? 'bench.ts' : '*.spec.ts',
  outputDir: process.env.OUT_DIR ?? '../../ui/test-out',
  reporter: './reporter.ts',
  workers: 1,
  timeout: 120000,
  expect: { timeout: 20000 },
  use: {
    baseURL: process.env.BASE_URL ?? 'http://127.0.0.1:7790',
    viewport: { width: 1280, height: 720 },
    timezoneId: 'Europe/Berlin',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: flags.split(' '),
    },
  },
});
