import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { runSideBySide } from '../scripts/side-by-side.ts';

const SCRIPTS = resolve(import.meta.dirname, '../scripts');

/** Runs the test runner in a repository that holds these test files only; `wrap` puts another program around it. */
function runTests(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  wrap = (command: readonly [string, string]): readonly string[] => command,
  { words = [], times }: { readonly words?: readonly string[]; readonly times?: object } = {},
) {
  const root = mkdtempSync(join(tmpdir(), 'svc-run-tests-'));
  try {
    cpSync(SCRIPTS, join(root, 'scripts'), { recursive: true });
    mkdirSync(join(root, 'test'));
    cpSync(resolve(SCRIPTS, '../test/source-files.ts'), join(root, 'test/source-files.ts'));
    if (times !== undefined) {
      mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
      writeFileSync(join(root, 'node_modules/.cache/svc-test-times.json'), JSON.stringify(times));
    }
    writeFileSync(join(root, 'package.json'), '{"type":"module"}');
    mkdirSync(join(root, 'packages/server/src'), { recursive: true });
    for (const [name, body] of Object.entries(files)) {
      mkdirSync(dirname(join(root, 'test', name)), { recursive: true });
      writeFileSync(join(root, 'test', name), `import { test } from 'node:test';\n${body}\n`);
    }
    const { NODE_TEST_CONTEXT: _, CI: __, ...inherited } = process.env;
    const runner = join(root, 'scripts/run-tests.ts');
    const [program = '', ...args] = wrap([process.execPath, runner]);
    const { status, stdout, stderr } = spawnSync(program, [...args, ...words], {
      cwd: root,
      encoding: 'utf8',
      env: { ...inherited, SVC_TEST_GRACE_MS: '200', ...env },
      timeout: 100_000,
    });
    const timesFile = join(root, 'node_modules/.cache/svc-test-times.json');
    const saved = existsSync(timesFile) ? readFileSync(timesFile, 'utf8') : '{}';
    return { status, stdout, stderr, saved: JSON.parse(saved) as Readonly<Record<string, number>> };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const PASSES = `test('passes', () => {});`;

test('a run in which everything passes exits with 0 and counts', () => {
  const { status, stdout } = runTests({ 'a.test.ts': PASSES, 'b.serial.test.ts': PASSES });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /passed: 2 tests in 2 files, 0 failed, 0 unsteady, 0 skipped/);
});

test('a test that fails is shown with its reason and what its file printed', () => {
  const { status, stdout } = runTests({
    'a.test.ts': `test('breaks', () => { console.log('a hint'); throw new Error('the reason'); });`,
  });
  assert.equal(status, 1);
  assert.match(stdout, /breaks\n.*the reason/s);
  assert.match(stdout, /a hint/);
  assert.match(
    stdout,
    /slowest files.*\nfailed: test\/a\.test\.ts: breaks\n\nFAILED/s,
    'the end of it is enough',
  );
});

test('a file that fails once and passes when it runs alone is reported as unsteady, with its failure', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-unsteady-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const mark = JSON.stringify(join(folder, 'ran'));
  const unsteady = `
    import { existsSync, writeFileSync } from 'node:fs';
    test('depends', () => {
      if (existsSync(${mark})) return;
      writeFileSync(${mark}, '');
      throw new Error('the first time');
    });`;
  const { status, stdout } = runTests({ 'a.test.ts': unsteady, 'b.test.ts': PASSES });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /✗ test\/a\.test\.ts at first, beside other files\n.*depends\n.*the first time/s);
  assert.match(stdout, /unsteady, which is a fault to find: test\/a\.test\.ts/);
  assert.match(stdout, /passed: 2 tests in 2 files, 0 failed, 1 unsteady/);
});

test('the time of each file is saved, and that of the suite when all files ran', () => {
  const files = { 'a.test.ts': PASSES, 'b.test.ts': PASSES };
  assert.deepEqual(Object.keys(runTests(files).saved).toSorted(), [
    'test/a.test.ts',
    'test/b.test.ts',
    'whole suite',
  ]);
  assert.deepEqual(Object.keys(runTests(files, {}, undefined, { words: ['a.test'] }).saved), [
    'test/a.test.ts',
  ]);
});

test('a word chooses files by their path in the repository, not by the folder that the repository is in', () => {
  const files = { 'a.test.ts': PASSES, 'svc-run-tests.test.ts': PASSES };
  const { saved } = runTests(files, {}, undefined, { words: ['svc-run-tests'] });
  assert.deepEqual(Object.keys(saved), ['test/svc-run-tests.test.ts']);
});

test('tests of packages that are installed beside ours are left out', () => {
  const { status, stdout } = runTests({ 'a.test.ts': PASSES, 'clients/node_modules/b.test.ts': PASSES });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /passed: 1 tests in 1 files/);
});

test('a run that is killed keeps the times of the files that had ended', () => {
  const kills = `test('kills the runner', () => process.kill(process.ppid, 'SIGKILL'));`;
  const { status, saved } = runTests({ 'a.test.ts': PASSES, 'b.serial.test.ts': kills });
  assert.equal(status, null);
  assert.deepEqual(Object.keys(saved), ['test/a.test.ts']);
});

test('when many files fail none is run again', () => {
  const fails = `test('breaks', () => { throw new Error('always'); });`;
  const names = ['a', 'b', 'c', 'd'].map((name) => [`${name}.test.ts`, fails]);
  const { status, stdout } = runTests(Object.fromEntries(names) as Record<string, string>);
  assert.equal(status, 1, stdout);
  assert.match(stdout, /FAILED: 4 tests in 4 files, 4 failed, 0 unsteady/);
  assert.doesNotMatch(stdout, /at first/);
});

test('a file that crashes or holds no test fails the run', () => {
  for (const body of [`throw new Error('at load');`, 'export {};']) {
    const { status, stdout } = runTests({ 'a.test.ts': body, 'b.test.ts': PASSES });
    assert.equal(status, 1, stdout);
  }
});

test('a skipped test is allowed on a laptop and fails in CI', () => {
  const files = { 'a.test.ts': `${PASSES} test('later', { skip: 'not here' }, () => {});` };
  assert.equal(runTests(files).status, 0);
  const { status, stdout } = runTests(files, { CI: 'true' });
  assert.equal(status, 1);
  assert.match(stdout, /CI does not allow: test\/a\.test\.ts: later/);
});

test('on a terminal the programs that tests start print as they do without one', () => {
  const body = `test('plain', () => { if (process.env['FORCE_COLOR'] !== undefined) throw new Error('in colours'); });`;
  const onTerminal = (command: readonly string[]) => [
    'script',
    '-qec',
    `env -u FORCE_COLOR -u NO_COLOR ${command.join(' ')}`,
    '/dev/null',
  ];
  const { status, stdout } = runTests({ 'a.test.ts': body }, { TERM: 'xterm' }, onTerminal);
  assert.equal(status, 0, stdout);
});

test('a file whose set-up fails ends at once, and what it had started is ended', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-left-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const pidFile = join(folder, 'pid');
  const body = `
    import { spawn } from 'node:child_process';
    import { writeFileSync } from 'node:fs';
    import { after, before } from 'node:test';
    let fixture;
    before(() => {
      const child = spawn('sleep', ['1000'], { detached: true });
      writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));
      throw new Error('the set-up failed');
    });
    after(() => fixture.destroy());
    ${PASSES}`;
  const { status, stdout } = runTests({ 'a.test.ts': body });
  assert.equal(status, 1, stdout);
  assert.match(stdout, /passes\n.*the set-up failed/s);
  assert.match(stdout, /left running: sleep 1000/);
  const state = spawnSync('ps', ['-o', 'stat=', '-p', readFileSync(pidFile, 'utf8')], { encoding: 'utf8' });
  assert.match(state.stdout.trim(), /^Z|^$/);
});

test('a file that leaves something running fails, though its tests passed', () => {
  const body = `import { spawn } from 'node:child_process';
    test('passes', () => { spawn('sleep', ['1001'], { detached: true, stdio: 'ignore' }).unref(); });`;
  const { status, stdout } = runTests({ 'a.test.ts': body });
  assert.equal(status, 1, stdout);
  assert.match(stdout, /left running: sleep 1001/);
});

test('files beside what they test share a process; a file that fails, leaves processes or ends the process runs again alone', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-together-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const pids = JSON.stringify(join(folder, 'pids'));
  const report = `import { appendFileSync } from 'node:fs'; appendFileSync(${pids}, process.pid + '\\n');`;
  const needsItsOwn = `${report} test('alone', () => { if (globalThis.met) throw new Error('met another'); });`;
  const meets = `${report} globalThis.met = true; test('meets', () => {});`;
  const src = (name: string) => `../packages/server/src/${name}.test.ts`;
  const fine = runTests({ [src('a')]: meets, [src('b')]: `${report} ${PASSES}`, [src('c')]: needsItsOwn });
  assert.equal(fine.status, 0, fine.stdout);
  assert.match(fine.stdout, /c\.test\.ts at first, beside other files\n.*alone\n.*met another/s);
  assert.match(fine.stdout, /passed: 3 tests in 3 files, 0 failed, 1 unsteady/);
  const ran = readFileSync(join(folder, 'pids'), 'utf8').trim().split('\n');
  assert.equal(ran.length, 4);
  assert.equal(new Set(ran).size, 2);
  const ended = runTests({
    [src('a')]: PASSES,
    [src('b')]: `test('ends', () => process.exit(3));`,
    [src('c')]: PASSES,
  });
  assert.equal(ended.status, 1, ended.stdout);
  assert.match(ended.stdout, /FAILED: \d tests in 3 files, 1 failed/);
  const left = `import { spawn } from 'node:child_process';
    test('leaves', () => { spawn('sleep', ['1002'], { detached: true, stdio: 'ignore' }).unref(); });`;
  const leaves = runTests({ [src('a')]: PASSES, [src('b')]: left });
  assert.equal(leaves.status, 1, leaves.stdout);
  assert.match(leaves.stdout, /✗ packages\/server\/src\/b\.test\.ts[^✗]*left running: sleep 1002/s);
  assert.match(leaves.stdout, /FAILED: 2 tests in 2 files, 1 failed/);
});

test('more files than usual run side by side while processors are idle, and never more than there may be', async () => {
  let [idle, looks] = [0, 0];
  const running = new Set<() => void>();
  const job = () => new Promise<void>((resolve) => void running.add(resolve));
  const idleShare = () => ((looks += 1), idle);
  const jobs = Array.from({ length: 8 }, () => job);
  const all = runSideBySide(jobs, { min: 2, max: 4, lookEveryMs: 1, idleShare });
  const assertStays = async (count: number) => {
    looks = 0;
    await waitUntil(() => looks > 10);
    assert.equal(running.size, count);
  };
  const endAll = () => {
    for (const end of running) end();
    running.clear();
  };
  await assertStays(2);
  idle = 1;
  await assertStays(4);
  idle = 0;
  endAll();
  await assertStays(2);
  endAll();
  await waitUntil(() => running.size === 2);
  endAll();
  await all;
});

test('shards together hold every file once, also when machines know different times', () => {
  const names = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}.test.ts`);
  const files = Object.fromEntries(names.map((name) => [name, PASSES]));
  const ran = [1, 2, 3].flatMap((shard) => {
    const times = { 'test/c.test.ts': shard * 1000 };
    const { stdout } = runTests(files, {}, undefined, { words: ['--shard', `${shard}/3`], times });
    return [...stdout.matchAll(/✓ test\/(\w\.test\.ts)/g)].map(([, name]) => name);
  });
  assert.deepEqual(new Set(ran), new Set(names));
  assert.equal(ran.length, names.length);
  for (const shard of ['0/3', '4/3', 'half']) {
    const { status, stderr } = runTests(files, {}, undefined, { words: ['--shard', shard] });
    assert.equal(status, 2);
    assert.match(stderr, /--shard must be K\/N/);
  }
});

test('the file that took longest runs first the next time', () => {
  const files = { 'a.serial.test.ts': PASSES, 'b.serial.test.ts': PASSES, 'c.serial.test.ts': PASSES };
  const times = { 'test/a.serial.test.ts': 10, 'test/b.serial.test.ts': 30, 'test/c.serial.test.ts': 20 };
  const { stdout } = runTests(files, {}, undefined, { times });
  assert.match(stdout, /✓ test\/b.*✓ test\/c.*✓ test\/a/s);
});

test('of a change only the tests that import it run, however far away', () => {
  const git = `import { execFileSync } from 'node:child_process';`;
  const files = {
    '../packages/server/src/inner.ts': 'export const inner = 1;',
    '../packages/server/src/outer.ts': "import { inner } from './inner.ts';\nexport const outer = inner;",
    '../packages/server/src/outer.test.ts': `import './outer.ts';\n${PASSES}`,
    '../packages/server/src/other.test.ts': `${git}\n${PASSES}`,
  };
  const inRepository = (command: readonly string[]) => [
    'sh',
    '-ec',
    `git init -q . && git add packages && git -c user.name=a -c user.email=a@b commit -qm first && echo '// changed' >>packages/server/src/inner.ts && exec ${command.join(' ')} --changed HEAD`,
  ];
  const { status, stdout } = runTests(files, {}, inRepository);
  assert.equal(status, 0, stdout);
  assert.match(stdout, /can reach 1 test files; running the nearest 1/);
  assert.match(stdout, /✓ packages\/server\/src\/outer\.test\.ts/);
  assert.doesNotMatch(stdout, /other\.test\.ts/);
});
