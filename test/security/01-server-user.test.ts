import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { chmod, lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { installationUser } from '../../packages/server/src/host/installation-user.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const exec = promisify(execFile);
/** As long as a signing key. */
const CONTENT = 'what-only-root-may-read-32-bytes';

/** Everything that root types and that works below the server's folder. */
const COMMANDS: readonly (readonly string[])[] = [
  ['org', 'ls'],
  ['org', 'create', 'other'],
  ['org', 'quota', 'acme'],
  ['apikey', 'ls', '--org', 'acme'],
  ['apikey', 'create', '--org', 'acme'],
  ['apikey', 'revoke', '--org', 'acme', 'x'],
  ['token', 'ls', '--user', 'ann@example.com'],
  ['token', 'create', '--user', 'ann@example.com'],
  ['token', 'revoke', '--user', 'ann@example.com', 'x'],
  ['audit', 'verify'],
  ['server', 'keygen'],
  ['server', 'rotate-secrets'],
  ['server', 'status'],
];

/** What these commands open, make or change there, by name; apart from the store itself, without which they would get nowhere. */
const BESIDES = [
  'store.db-wal',
  'store.db-shm',
  'store.db-journal',
  'signing.key',
  'secrets.key',
  'admin.sock',
];

interface Fixture {
  readonly dataFolder: string;
  /** A file that only root may read. */
  readonly victim: string;
  /** A path in a folder of root's where there is nothing. */
  readonly empty: string;
}

async function prepare(t: TestContext): Promise<Fixture> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-links-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  const [dataFolder, victim, empty] = ['data', 'victim', 'empty'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(victim, CONTENT, { mode: 0o600 });
  await exec(SVC, ['--path', dataFolder, 'org', 'create', 'acme', '--owner', 'ann@example.com']);
  return { dataFolder, victim, empty };
}

/** As the server's user. */
function attack(fixture: Fixture, script: string): void {
  const cwd = join(fixture.dataFolder, 'server');
  execFileSync('sh', ['-euc', script], { cwd, ...installationUser(fixture.dataFolder) });
}

async function look({ victim, empty }: Fixture): Promise<unknown> {
  const { uid, gid, mode, size, mtimeMs, ino, nlink } = await lstat(victim);
  const content = await readFile(victim, 'utf8');
  const isMade = await lstat(empty).then(
    () => true,
    () => false,
  );
  return { uid, gid, mode, size, mtimeMs, ino, nlink, content, isMade };
}

async function run(fixture: Fixture, words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await exec(SVC, ['--path', fixture.dataFolder, ...words]).catch(
    (failure: { stdout: string; stderr: string }) => failure,
  );
  return stdout + stderr;
}

for (const [what, target] of [
  ['a file of root', 'victim'],
  ['a place where only root may write', 'empty'],
] as const) {
  for (const names of [BESIDES, ['store.db']]) {
    test(`links (${names.join(', ')}) to ${what} lead no command of root there`, async (t) => {
      const fixture = await prepare(t);
      const before = await look(fixture);
      attack(fixture, names.map((name) => `ln -sfT ${fixture[target]} ${name}`).join('; '));
      const said = await Promise.all(COMMANDS.map((words) => run(fixture, words)));
      assert.deepEqual(await look(fixture), before, said.join('\n'));
      assert.ok(!said.join('\n').includes(CONTENT), 'a command prints what the file holds');
    });
  }
}

test('files that root creates before the first start and later belong to the server user', async (t) => {
  const fixture = await prepare(t);
  for (const words of [
    ['server', 'keygen'],
    ['apikey', 'create'],
    ['audit', 'verify'],
  ]) {
    await exec(SVC, ['--path', fixture.dataFolder, ...words]);
  }
  const folder = join(fixture.dataFolder, 'server');
  for (const name of ['.', ...(await readdir(folder))]) {
    assert.equal((await lstat(join(folder, name))).uid, installationUser(fixture.dataFolder).uid, name);
  }
});

test('a program of one installation cannot connect to the engine of another', async (t) => {
  const [one, other] = [await prepare(t), await prepare(t)];
  const at = (...words: string[]) => exec(SVC, ['--path', one.dataFolder, 'engine', ...words]);
  await at('start', '--detach', '--isolation', 'container', '--prepared-slots', '0');
  await using _engine = { [Symbol.asyncDispose]: async () => void (await at('stop')) };
  const ownerOf = async ({ dataFolder }: Fixture) => {
    const { uid, gid } = await lstat(join(dataFolder, 'server'));
    return { uid, gid };
  };
  const ask = (user: { readonly uid: number; readonly gid: number }) =>
    exec('curl', ['-sS', '--unix-socket', join(one.dataFolder, 'engine.sock'), 'http://engine/health'], user);
  await ask(await ownerOf(one));
  await assert.rejects(ask(await ownerOf(other)), /[Cc]ould(n't| not) connect/);
});
