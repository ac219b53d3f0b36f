import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Tmux } from './tmux.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const TIMEOUT_MS = 110_000;

interface Outcome {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `svc` on a new data folder. */
async function freshLine(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-fresh-'));
  // A shell whose terminal is gone may still be writing its history.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  await chmod(folder, 0o711);
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, SVC_HOME: join(folder, 'data') };
  const run = async (program: string, words: readonly string[]): Promise<Outcome> =>
    await new Promise((settle) => {
      execFile(program, words, { env, timeout: TIMEOUT_MS }, (error, stdout, stderr) =>
        settle({ code: error === null ? 0 : (error.code ?? null), stdout, stderr }),
      );
    });
  return { folder, env, shell: (line: string) => run('sh', ['-c', line]), svc: run.bind(null, SVC) };
}

test('the key of the hint arrives in the variable alone, whichever way it is typed', async (t) => {
  const { shell, svc } = await freshLine(t);
  const KEY = /^\[svc_[\w-]+\.[\w-]+\.[\w-]+\]\n$/;
  const quiet = await shell(`export SVC_API_KEY=$(${SVC} server keygen --quiet); echo "[$SVC_API_KEY]"`);
  assert.match(quiet.stdout, KEY);
  assert.equal(quiet.stderr, '');
  const plain = await shell(`export SVC_API_KEY=$(${SVC} server keygen -q); echo "[$SVC_API_KEY]"`);
  assert.match(plain.stdout, KEY);
  const piped = await shell(`KEY=$(${SVC} server keygen --namespace ci --expire 1d); echo "[$KEY]"`);
  assert.match(piped.stdout, KEY);
  assert.match(piped.stderr, /^Data folder: .*\/data\nToken expires: \d{4}-.*\nNamespace: ci\n$/);
  const shown = JSON.parse((await svc(['server', 'keygen', '--json'])).stdout) as Record<string, unknown>;
  assert.deepEqual(Object.keys(shown), ['token', 'expires', 'namespace']);
});

test('at a terminal the key is printed with advice', async (t) => {
  const { folder, env } = await freshLine(t);
  await using tmux = await Tmux.open(folder, env);
  await tmux.line(`clear; ${SVC} server keygen`);
  await tmux.until(/^Token: svc_[^]*\nToken expires: never\nNamespace: \* \(all\)\nhost>$/);
});

test('the first API key of a fresh machine is made as the help says, for default however it is named', async (t) => {
  const { shell, svc } = await freshLine(t);
  const none = await svc(['apikey', 'ls']);
  assert.deepEqual([none.code, none.stdout], [0, '']);
  assert.match(none.stderr, /svc apikey create/);
  for (const words of ['apikey create', 'apikey create --org default --name ci']) {
    const { stdout, stderr } = await shell(`KEY=$(${SVC} ${words}); echo "[$KEY]"`);
    assert.match(stdout, /^\[svc_[0-9a-f]{64}\]\n$/, stderr);
  }
  const listed = JSON.parse((await svc(['apikey', 'ls', '-o', 'json'])).stdout) as { name: string }[];
  assert.deepEqual(listed.map(({ name }) => name).toSorted(), ['ci', 'command line']);
  const missing = await svc(['apikey', 'create', '--org', 'nowhere']);
  assert.match(missing.stderr, /There is no organization 'nowhere'; make it with: svc org create/);
});

test('a time that no calendar has is refused wherever one is given', async (t) => {
  const { svc } = await freshLine(t);
  const cases = [
    ['server', 'keygen', '--expire', '99999y'],
    ['apikey', 'create', '--expire', '99999y'],
    ['token', 'create', '--user', 'ann@example.com', '--expire', '99999y'],
  ];
  for (const words of cases) {
    const { code, stdout, stderr } = await svc(words);
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, /'99999y' from now is after the year 9999: give a shorter time/);
  }
  for (const words of [
    ['events', '--since', '99999999999d'],
    ['logs', '--until', '99999999999d', 'x'],
    ['exec', '--timeout', '25d', 'x', 'true'],
    ['preview', 'create', '--expire', '99999999d', 'x', '80'],
  ]) {
    const { code, stderr } = await svc(words);
    assert.equal(code, 2, words.join(' '));
    assert.match(stderr, /Give at most \d+d\./);
  }
});
