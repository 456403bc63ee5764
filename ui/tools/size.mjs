// Prints what the page weighs when compressed, and fails above the limit.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const LIMIT = 90 * 1024;
const walk = (dir) =>
  readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    return statSync(path).isDirectory() ? walk(path) : [path];
  });

let sum = 0;
const parts = walk('dist').map((path) => {
  const size = gzipSync(readFileSync(path), { level: 9 }).length;
  sum += size;
  return `${path.slice('dist/'.length)} ${(size / 1024).toFixed(1)}`;
});
console.log(`ui: ${(sum / 1024).toFixed(1)} kB gzip of ${LIMIT / 1024} (${parts.join(', ')})`);
if (sum > LIMIT) {
  console.error(`ui: the page is heavier than ${LIMIT / 1024} kB; look for a new dependency`);
  process.exit(1);
}
