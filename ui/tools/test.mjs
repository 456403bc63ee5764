// Bundles the tests of the plain modules and runs them with Node's own runner.
import { readdirSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';

const out = 'test-out/unit';
rmSync(out, { recursive: true, force: true });
const files = readdirSync('test').filter((f) => f.endsWith('.test.ts')).map((f) => join('test', f));
await build({ entryPoints: files, bundle: true, platform: 'node', format: 'esm', outdir: out, outExtension: { '.js': '.mjs' } });
const built = readdirSync(out).filter((f) => f.endsWith('.mjs')).map((f) => join(out, f));
const run = spawnSync(process.execPath, ['--test', ...built], { encoding: 'utf8' });
const count = (word) => Number(new RegExp(`^(?:#|ℹ) ${word} (\\d+)`, 'm').exec(run.stdout)?.[1] ?? 0);
const failed = run.status === 0 ? count('fail') : Math.max(1, count('fail'));
if (failed) console.log(run.stdout + run.stderr);
console.log(`ui: ${count('pass')} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
