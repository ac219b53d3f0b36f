import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client, Sandbox, SvcError, type SvcErrorCode } from '@svc/sdk';
import { startWeb, WITH_CURL, type Web } from '../e2e/web-fixture.ts';
import { importChanged } from '../engine/image-fixture.ts';
import { addGit } from '../engine/interpreter-images.ts';
import { GREETING, makeMirror } from '../engine/make-mirror.ts';

/** Against Debian's git: repositories in folders of the sandbox, and one of a host that asks for a password. */

const [API, EVIL] = ['api.public.example', 'evil.public.example'];
const VALUE = 'sk-live-4711-real';
const PRIVATE = `https://${API}/private/git/project.git`;
const AUTHOR = { name: 'Ada Lovelace', email: 'ada@example.com' };
const undo = new AsyncDisposableStack();
let web: Web;
let client: Client;
let sandbox: Sandbox;

before(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-git-'));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  await makeMirror(folder);
  web = await startWeb(undo, { folder, password: VALUE });
  await importChanged(web.server.engine, 'svc/git', addGit);
  client = new Client({ apiUrl: web.server.url });
  sandbox = await Sandbox.create({
    client,
    image: 'svc/git',
    isolation: 'container',
    network: { tls: { upstream_ca_cert: [web.certificate] } },
    secrets: { GIT_TOKEN: { value: VALUE, hosts: [API] } },
  });
  undo.defer(() => sandbox.remove());
});
after(() => undo.disposeAsync());

/** A repository with one commit, as others push to it and clone it. */
async function makeBare(name: string): Promise<string> {
  const script = `set -e; git init -q --bare -b main "$0.git"; git clone -q "$0.git" "$0.first" 2> /dev/null; cd "$0.first"; git checkout -q -b main; echo one > a.txt; git add a.txt
    git -c user.name=x -c user.email=x@example.com commit -q -m first; git push -q origin main; rm -r "$0.first"`;
  const made = await sandbox.exec('sh', ['-c', script, `/srv/${name}`]);
  assert.equal(made.code, 0, made.errorText());
  return `/srv/${name}.git`;
}

async function failureOf(call: Promise<unknown>, code: SvcErrorCode): Promise<SvcError> {
  const failure = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(SvcError.is(failure, code), String(failure));
  return failure;
}

test('a repository is cloned, changed, committed, pushed and pulled', async () => {
  const { git } = sandbox;
  const bare = await makeBare('round');
  const one = await git.clone(bare, { path: '/code/one', branch: 'main' });
  assert.equal(one, '/code/one');
  const clean = await git.status(one);
  assert.deepEqual(
    [clean.branch, clean.upstream, clean.ahead, clean.behind, clean.isClean],
    ['main', 'origin/main', 0, 0, true],
  );
  await git.clone(bare, { path: '/code/two' });

  await sandbox.shell('cd /code/one; echo two >> a.txt; printf new > "with space.txt"; git mv a.txt ü.txt');
  const before = await git.status(one);
  assert.deepEqual(before.files, [
    { path: 'ü.txt', renamedFrom: 'a.txt', index: 'renamed', workTree: 'modified' },
    { path: 'with space.txt', renamedFrom: null, index: 'untracked', workTree: 'untracked' },
  ]);
  await git.add(one, ['with space.txt']);
  const staged = await git.status(one);
  assert.equal(staged.files.find((file) => file.path === 'with space.txt')?.index, 'added');
  await git.add(one);
  const id = await git.commit(one, "it's $(touch /tmp/no)\n\nwith a body", { author: AUTHOR });
  const committed = await git.status(one);
  assert.deepEqual([committed.commit, committed.ahead, committed.isClean], [id, 1, true]);
  const log = await sandbox.exec('git', ['-C', one, 'log', '-1', '--format=%an %ae %cn%n%B']);
  assert.equal(
    log.text().trimEnd(),
    "Ada Lovelace ada@example.com Ada Lovelace\nit's $(touch /tmp/no)\n\nwith a body",
  );
  assert.equal(await sandbox.files.exists('/tmp/no'), false);

  await git.push(one);
  await git.pull('/code/two');
  assert.equal((await git.status('/code/two')).commit, id);
});

test('branches are made, listed, switched to, pushed and deleted', async () => {
  const { git } = sandbox;
  const bare = await makeBare('branches');
  const path = await git.clone(bare, { path: '/code/branches' });
  await git.createBranch(path, 'feature/search', { from: 'main' });
  await git.checkout(path, 'feature/search');
  await sandbox.shell('echo three > /code/branches/b.txt');
  await git.add(path);
  const id = await git.commit(path, 'second', { author: AUTHOR });
  await git.push(path, { setUpstream: true });
  const found = await git.branches(path);
  assert.deepEqual(
    found.map(({ name, upstream, isCurrent }) => [name, upstream, isCurrent]),
    [
      ['feature/search', 'origin/feature/search', true],
      ['main', 'origin/main', false],
    ],
  );
  assert.equal(found[0]?.commit, id);

  // A branch that only the remote has, in a clone of the last commit alone.
  const shallow = await git.clone(`file://${bare}`, {
    path: '/code/shallow',
    branch: 'feature/search',
    depth: 1,
  });
  assert.equal(
    (await sandbox.exec('git', ['-C', shallow, 'rev-list', '--count', 'HEAD'])).text().trim(),
    '1',
  );
  const whole = await git.clone(bare, { path: '/code/whole' });
  await git.checkout(whole, 'feature/search');
  assert.equal((await git.status(whole)).branch, 'feature/search');
  await git.checkout(whole, id);
  assert.equal((await git.status(whole)).branch, null);

  await git.checkout(path, 'main');
  await git.createBranch(path, 'lost', { from: 'feature/search' });
  const refused = await failureOf(git.deleteBranch(path, 'lost'), 'git_failed');
  assert.match(refused.message, /not fully merged/);
  await git.deleteBranch(path, 'lost', { force: true });
  assert.deepEqual(
    (await git.branches(path)).map(({ name }) => name),
    ['feature/search', 'main'],
  );
});

test('a pull of a branch that has gone its own way says so, and rebases when asked to', async () => {
  const { git } = sandbox;
  const bare = await makeBare('apart');
  for (const name of ['left', 'right']) {
    await git.clone(bare, { path: `/code/${name}` });
    await sandbox.files.write(`/code/${name}/${name}.txt`, name);
    await git.add(`/code/${name}`);
    await git.commit(`/code/${name}`, name, { author: AUTHOR });
  }
  await git.push('/code/left', { branch: 'main' });
  const rejected = await failureOf(git.push('/code/right'), 'git_failed');
  assert.match(String(rejected.details?.['stderr']), /rejected/);
  await failureOf(git.pull('/code/right'), 'git_failed');
  await sandbox.shell('cd /code/right; git config user.name x; git config user.email x@example.com');
  await git.pull('/code/right', { branch: 'main', rebase: true });
  const status = await git.status('/code/right');
  assert.deepEqual([status.ahead, status.behind, status.isClean], [1, 0, true]);
});

test('a credential that the sandbox does not hold clones over the proxy, and is written nowhere', async () => {
  const { git } = sandbox;
  const path = await git.clone(PRIVATE, { path: '/code/private', auth: { secret: 'GIT_TOKEN' } });
  assert.equal(await sandbox.files.readText(`${path}/README`), `${GREETING}\n`);
  await git.pull(path, { auth: { secret: 'GIT_TOKEN', username: 'it\'s "me"' } });
  const kept = await sandbox.shell(`grep -rlF -e GIT_TOKEN -e ${VALUE} /code/private /root; true`);
  assert.equal(kept.text(), '');
  const asked = web.said.filter((line) => line.includes('authorization') || line.includes('Authorization'));
  const sent = asked.map((line) => Buffer.from(/Basic (\S+)/.exec(line)?.[1] ?? '', 'base64').toString());
  assert.ok(sent.includes(`x-access-token:${VALUE}`), sent.join());
  assert.ok(sent.includes(`it's "me":${VALUE}`), sent.join());
});

test('failures of authentication say what to give', async () => {
  const { git } = sandbox;
  const none = await failureOf(git.clone(PRIVATE, { path: '/code/none' }), 'git_authentication_failed');
  assert.match(none.message, /give auth: \{ secret \}/);
  const elsewhere = `https://${EVIL}/private/git/project.git`;
  const other = git.clone(elsewhere, { path: '/code/none', auth: { secret: 'GIT_TOKEN' } });
  await assert.rejects(other, (error) => SvcError.is(error) && error.code.startsWith('git_'));
  assert.ok(!web.said.some((line) => line.startsWith(EVIL) && /authorization/i.test(line)));
  const absent = git.clone(PRIVATE, { path: '/code/none', auth: { secret: 'NO_SUCH' } });
  assert.match((await failureOf(absent, 'invalid_request')).message, /no secret 'NO_SUCH'/);
  assert.equal(await sandbox.files.exists('/code/none'), false);
});

test('failures name the repository, the git or the author that is missing', async () => {
  const { git } = sandbox;
  await failureOf(git.status('/etc'), 'not_a_repository');
  await failureOf(git.status('/nowhere'), 'not_a_repository');
  await failureOf(git.clone('/srv/nowhere.git', { path: '/code/x' }), 'not_a_repository');
  const path = await git.clone(await makeBare('author'), { path: '/code/author' });
  const anonymous = await failureOf(git.commit(path, 'x', { allowEmpty: true }), 'invalid_request');
  assert.equal(anonymous.details?.['field'], 'author');
  const empty = await failureOf(git.commit(path, 'x', { author: AUTHOR }), 'git_failed');
  assert.match(empty.message, /nothing to commit/);
  await using without = await Sandbox.create({ client, image: WITH_CURL, isolation: 'container' });
  const missing = await failureOf(without.git.status('/'), 'git_missing');
  assert.match(missing.message, /image 'svc\/clients'.*apt-get install -y git/);
});

test('no option, command or credential gets in by a name or an address', async () => {
  const { git } = sandbox;
  const path = await git.clone(await makeBare('hostile'), { path: '/code/-hostile' });
  const touch = 'touch /tmp/no';
  const refusals: readonly [field: string, call: () => Promise<unknown>][] = [
    ['url', () => git.clone(`--upload-pack=${touch}`)],
    ['url', () => git.clone(`https://me:${VALUE}@${API}/private/git/project.git`)],
    ['branch', () => git.clone('/srv/hostile.git', { branch: '--x' })],
    ['depth', () => git.clone('/srv/hostile.git', { depth: 0 })],
    ['path', () => git.status('')],
    ['ref', () => git.checkout(path, '--orphan')],
    ['name', () => git.createBranch(path, '-D')],
    ['name', () => git.createBranch(path, 'a..b')],
    ['from', () => git.createBranch(path, 'x', { from: '--force' })],
    ['name', () => git.deleteBranch(path, '--all')],
    ['remote', () => git.push(path, { remote: `ext::sh -c ${touch}` })],
    ['remote', () => git.push(path, { remote: '--receive-pack=x' })],
    ['branch', () => git.push(path, { branch: ':main' })],
    ['remote', () => git.pull(path, { remote: '--upload-pack=x' })],
    ['auth.secret', () => git.pull(path, { auth: { secret: `A"; ${touch}; "` } })],
    ['auth.username', () => git.pull(path, { auth: { secret: 'GIT_TOKEN', username: 'a\npassword=b' } })],
    ['files', () => git.add(path, [])],
    ['files', () => git.add(path, ['a\0b'])],
  ];
  for (const [field, call] of refusals) {
    const refused = await failureOf(call(), 'invalid_request');
    assert.equal(refused.details?.['field'], field);
    assert.ok(!refused.message.includes(VALUE));
  }
  await failureOf(git.clone(`ext::sh -c '${touch}'`, { path: '/code/ext' }), 'git_failed');
  // Names of files are names: no options and no patterns.
  for (const name of ['--force', '*', ':(top)']) await sandbox.files.write(`${path}/${name}`, 'x');
  await git.add(path, ['--force', '*']);
  const { files } = await git.status(path);
  assert.deepEqual(
    files.map((file) => [file.path, file.index]),
    [
      ['*', 'added'],
      ['--force', 'added'],
      [':(top)', 'untracked'],
    ],
  );
  assert.equal(await sandbox.files.exists('/tmp/no'), false);
});
