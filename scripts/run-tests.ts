import { randomUUID } from 'node:crypto';
import { globSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { endLeftProcesses, MARK } from './left-processes.ts';
import { TestTally } from './test-tally.ts';

/**
 * Runs every test file: those that share the machine side by side, then `*.serial.test.ts` one by one.
 * Arguments choose the files whose path contains one of them. In CI a skipped test is a failed one.
 */
const ROOT = join(import.meta.dirname, '..');
/** Those that take a minute come first, so that none of them is alone at the end. */
const PATTERNS = ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'packages/*/src/**/*.test.ts'];
/** With three on two cores the suite ends an eighth sooner, and one or two files meet a deadline. */
const MIN_AT_A_TIME = 2;
/** For what hangs, not for what is slow: a busy machine may take many times as long as an idle one. */
const TEST_TIMEOUT_MS = 240_000;
const FILE_TIMEOUT_MS = 600_000;
const SLOWEST_SHOWN = 8;
const TMPFS = 0x01021994;
const ON_DISK = '/var/tmp';
/** More than these fail for a reason that a second run does not take away. */
const MAX_RUN_AGAIN = 3;

const files = findTestFiles(process.argv.slice(2));
if (files.length === 0) {
  console.error('error: no test file matches; run `make test` for all of them');
  process.exit(2);
}
const serial = files.filter((file) => file.endsWith('.serial.test.ts'));
const parallel = files.filter((file) => !serial.includes(file));

// Every file loads much of the same code, most of it in processes of its own.
process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules/.cache/svc-tests');

// Tests count what is there. Those that are about the adaptive pool switch it on by its option.
process.env['SVC_WARM_ADAPTIVE'] ??= '0';

// Debian 13 keeps /tmp in memory: no place for disks, and no file system of the kind that they are promised on.
if (statfsSync(tmpdir()).type === TMPFS) process.env['TMPDIR'] = ON_DISK;

// On a terminal node:test would have all that the tests start print in colours, which changes what they read.
process.stdout.isTTY = false;

const startedAt = performance.now();
const tally = new TestTally((line) => console.log(line));
await runFiles(parallel, Math.max(MIN_AT_A_TIME, Math.floor(availableParallelism() / 2)));
await runFiles(serial, 1);
await runAgain(tally.failed());

const failed = tally.report({
  skipsFail: process.env['CI'] === 'true',
  slowest: SLOWEST_SHOWN,
  wallMs: performance.now() - startedAt,
});
process.exit(failed ? 1 : 0);

function findTestFiles(words: readonly string[]): string[] {
  return PATTERNS.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).toSorted()).filter(
    (file) => words.length === 0 || words.some((word) => join(ROOT, file).includes(word)),
  );
}

async function runFiles(files: readonly string[], concurrency: number): Promise<void> {
  if (files.length === 0) return;
  console.log(`${files.length} test files, ${concurrency} at a time`);
  const waiting = [...files];
  const worker = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) await runFile(file);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/**
 * A few that failed may have failed by what else went on: they run once more, alone. One that passes then is reported as unsteady,
 * with its first failure.
 */
async function runAgain(files: readonly string[]): Promise<void> {
  if (files.length > MAX_RUN_AGAIN) return;
  for (const file of files) tally.runAgain(file);
  await runFiles(files, 1);
}

/**
 * `timeout` ends a test that hangs, the signal a file that hangs elsewhere. A file ends with its last test, also when a set-up that
 * failed half-way left something open; what it left running is ended, and fails it.
 */
async function runFile(file: string): Promise<void> {
  const result = tally.begin(file);
  const mark = randomUUID();
  const events = run({
    files: [join(ROOT, file)],
    timeout: TEST_TIMEOUT_MS,
    signal: AbortSignal.timeout(FILE_TIMEOUT_MS),
    cwd: ROOT,
    execArgv: ['--test-force-exit'],
    env: { ...process.env, [MARK]: mark },
  });
  for await (const event of events) result.take(event);
  result.end(await endLeftProcesses(mark));
}
