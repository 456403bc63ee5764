import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

/* One line a test, the reason of each failure, and the sum as the last line. */
export default class Lines implements Reporter {
  private passed = 0;
  private failed = 0;

  onTestEnd(test: TestCase, result: TestResult): void {
    const ok = result.status === 'passed';
    if (ok) this.passed++;
    else this.failed++;
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${test.parent.project()!.name}: ${test.title} (${result.duration} ms)`);
    if (!ok) for (const e of result.errors) console.log((e.stack ?? e.message ?? '').slice(0, 2000));
  }

  onStdOut(chunk: string | Buffer): void {
    process.stdout.write(chunk);
  }

  onError(error: { message?: string; stack?: string }): void {
    this.failed++;
    console.log(error.stack ?? error.message);
  }

  onEnd(): void {
    console.log(`browser: ${this.passed} passed, ${this.failed} failed`);
  }

  printsToStdio(): boolean {
    return true;
  }
}
