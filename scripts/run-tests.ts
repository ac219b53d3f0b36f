import { randomUUID } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { chooseTests } from './choose-tests.ts';
import { endLeftProcesses, MARK } from './left-processes.ts';
import { runSideBySide, type Job } from './side-by-side.ts';
import { readEndOfFile, type TestEvent, TestTally } from './test-tally.ts';
import { TestTimes, timesFileOf, WHOLE_SUITE } from './test-times.ts';

/**
 * Runs every test file: those that share the machine side by side, as many as it has processors for at the moment, then
 * `*.serial.test.ts` one by one. Files that stand beside what they test share a process with others, in which what all of them need is
 * loaded once; one that fails there runs again alone. Arguments choose the files (choose-tests.ts). In CI a skipped test is a
 * failed one.
 */
const ROOT = join(import.meta.dirname, '..');
/** Test processes that run side by side always, and at most while processors are idle: each takes up to half a GiB. */
const MIN_AT_A_TIME = Math.max(2, Math.floor(availableParallelism() / 2));
const MAX_AT_A_TIME = 3 * MIN_AT_A_TIME;
const GROUP_MAIN = join(import.meta.dirname, 'test-group.ts');
const FILES_IN_GROUP = 12;
/** For files that hang, not for slow ones: a busy machine may take many times as long as an idle one. */
const TEST_TIMEOUT_MS = 240_000;
const FILE_TIMEOUT_MS = 600_000;
const GROUP_TIMEOUT_MS = 2 * FILE_TIMEOUT_MS;
const SLOWEST_SHOWN = 8;
const TMPFS = 0x01021994;
const ON_DISK = '/var/tmp';
/** When more files fail, the cause is not chance, and they are not run again. */
const MAX_RUN_AGAIN = 3;

const times = new TestTimes(timesFileOf(ROOT));
const files = await chooseTests(ROOT, process.argv.slice(2), times).catch((error: unknown) => {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(2);
});
if (files.length === 0) {
  console.error('error: no test file matches; run `make test` for all of them');
  process.exit(2);
}
const serial = files.filter((file) => file.endsWith('.serial.test.ts'));
const together = files.filter((file) => /^packages\/[a-z]+\/src\//.test(file) && !serial.includes(file));
const parallel = files.filter((file) => !serial.includes(file) && !together.includes(file));

// Every file loads much of the same code, most of it in processes of its own.
process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules/.cache/svc-tests');

// Tests count sandboxes, so the adaptive pool is off. Its own tests switch it on by its option.
process.env['SVC_WARM_ADAPTIVE'] ??= '0';

// Debian 13 keeps /tmp in memory, which is too small for disks and lacks features of the file systems that are supported.
if (statfsSync(tmpdir()).type === TMPFS) process.env['TMPDIR'] = ON_DISK;

// On a terminal node:test makes all started programs print colours, which changes the output that tests read.
process.stdout.isTTY = false;

const startedAt = performance.now();
const tally = new TestTally((line) => console.log(line));
// Groups come last: they are short, so that no long file runs alone at the end, also when no times are known.
const jobs = [...parallel.map((file) => () => runFile(file)), ...inGroups(together)];
await runSideBySide(jobs, { min: MIN_AT_A_TIME, max: MAX_AT_A_TIME });
await runFiles(serial);
await runAgain(tally.failed());

const wallMs = performance.now() - startedAt;
const isWholeSuite = process.argv.length === 2;
times.save([...tally.durations(), ...(isWholeSuite ? [[WHOLE_SUITE, wallMs] as const] : [])]);
const failed = tally.report({
  skipsFail: process.env['CI'] === 'true',
  slowest: SLOWEST_SHOWN,
  wallMs,
});
process.exit(failed ? 1 : 0);

async function runFiles(files: readonly string[]): Promise<void> {
  for (const file of files) await runFile(file);
}

/** Groups the files by package, because these load mostly the same modules. */
function inGroups(files: readonly string[]): readonly Job[] {
  const byPackage = Object.values(Object.groupBy(files, (file) => file.split('/')[1] ?? ''));
  return byPackage.flatMap((all = []) => {
    const groups: string[][] = [];
    for (let from = 0; from < all.length; from += FILES_IN_GROUP)
      groups.push(all.slice(from, from + FILES_IN_GROUP));
    return groups.map((group) => () => runGroup(group));
  });
}

/**
 * A few failures may be caused by other work on the machine: these files run once more, alone. A file that then passes is reported
 * as unsteady, with its first failure.
 */
async function runAgain(files: readonly string[]): Promise<void> {
  if (files.length > MAX_RUN_AGAIN) return;
  for (const file of files) tally.runAgain(file);
  await runFiles(files);
}

/**
 * `timeout` ends a hanging test, the signal a file that hangs elsewhere. A file ends with its last test, also when a failed set-up
 * left handles open; processes that it left running are killed and fail the file.
 */
async function runFile(file: string): Promise<void> {
  const result = tally.begin(file);
  const mark = randomUUID();
  for await (const event of eventsOf(join(ROOT, file), mark, FILE_TIMEOUT_MS)) result.take(event);
  result.end(await endLeftProcesses(mark));
  // After each file, so that a run that is interrupted keeps them.
  times.save(tally.durations());
}

/** The files of a group that failed, did not finish, or may have left processes running: each is run again alone. */
async function runGroup(files: readonly string[]): Promise<void> {
  const mark = randomUUID();
  const waiting = new Map(files.map((file) => [join(ROOT, file), file]));
  const more = { SVC_TEST_GROUP: JSON.stringify([...waiting.keys()]) };
  let events: TestEvent[] = [];
  for await (const event of eventsOf(GROUP_MAIN, mark, GROUP_TIMEOUT_MS, more)) {
    events.push(event);
    const end = readEndOfFile(event);
    const file = waiting.get(end?.name ?? '');
    if (end === undefined || file === undefined) continue;
    const result = tally.begin(file);
    for (const each of events) result.take(each);
    result.end([], end.durationMs);
    waiting.delete(end.name);
    events = [];
  }
  const left = await endLeftProcesses(mark);
  const failed = tally.failed().filter((file) => files.includes(file));
  for (const file of failed) tally.runAgain(file);
  if (left.length > 0) {
    console.log(`left running by one of ${files.join(', ')}:\n  ${left.join('\n  ')}`);
    for (const file of files) tally.forget(file);
  }
  await runFiles(left.length > 0 ? files : [...failed, ...waiting.values()]);
}

function eventsOf(
  file: string,
  mark: string,
  timeoutMs: number,
  more: Readonly<Record<string, string>> = {},
): AsyncIterable<TestEvent> {
  return run({
    files: [file],
    signal: AbortSignal.timeout(timeoutMs),
    cwd: ROOT,
    execArgv: ['--test-force-exit', `--test-timeout=${TEST_TIMEOUT_MS}`],
    env: { ...process.env, ...more, [MARK]: mark },
  });
}
