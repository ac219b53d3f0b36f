import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../packages/cli/src/config.ts';
import { requireHere } from '../../packages/cli/src/context/require-here.ts';
import { useCli } from './cli-line.ts';

const cli = useCli();

test("commands for the server's machine are refused for a remote server, and do nothing here", async () => {
  const { svc } = cli;
  const env = { ...svc.bareEnv, SVC_HOME: '' };
  const elsewhere = { ...env, SVC_API_URL: 'https://lab.example.com' };
  const added = await svc.run(['context', 'add', 'lab', '--url', 'https://lab.example.com'], { env });
  assert.equal(added.code, 0, added.stderr);
  for (const words of [
    ['image', 'import', '/none', 'none'],
    ['image', 'prune'],
    ['image', 'inspect', 'none'],
    ['image', 'build-demo'],
    ['org', 'ls'],
    ['org', 'create', 'acme'],
    ['audit', 'verify'],
    ['engine', 'stop'],
    ['pool', 'ls'],
    ['orphan', 'ls'],
    ['server', 'status'],
    ['server', 'stop'],
    ['server', 'keygen'],
    ['server', 'logs'],
    ['backup', '/nowhere'],
    ['restore', '/nowhere'],
    ['engine', 'status'],
    ['engine', 'logs'],
    ['orphan', 'rm', 'none'],
    ['org', 'quota', 'default'],
    ['user', 'link'],
    ['server', 'rotate-secrets'],
  ]) {
    const { code, stdout, stderr } = await svc.run(words, { env: elsewhere });
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(
      stderr,
      /of https:\/\/lab\.example\.com are managed on the machine.*data folder is \/var\/lib\/svc\n {2}try: /,
    );
  }
  const { folder } = svc.server.engine;
  const inFolder = await svc.run(['server', 'stop'], { env: { ...elsewhere, SVC_HOME: folder } });
  assert.equal(inFolder.code, 2, 'also when SVC_HOME names a folder of this machine');
  assert.match(inFolder.stderr, /of https:\/\/lab\.example\.com are managed on the machine/);
  const named = await svc.run(['image', 'prune', '--context', 'lab', '--path', folder], { env });
  assert.equal(named.code, 2, 'also when it is named as a context');
  await svc.run(['context', 'rm', 'lab'], { env });
  const here = await svc.run(['image', 'ls', '--path', folder]);
  assert.match(here.stdout, /svc\/busybox/, 'a server of this machine has the images of this machine');
});

test('a command of this machine is refused when another server of it was chosen', async (t) => {
  const { svc } = cli;
  const home = await mkdtemp(join(tmpdir(), 'svc-other-'));
  t.after(() => rm(home, { recursive: true }));
  const { folder } = svc.server.engine;
  const { port } = new URL(svc.server.url);
  // By the function, because the command line takes the default data folder when none is named, which is not this test's.
  const config = { ...readConfig({}, { HOME: home }), dataFolder: folder };
  const globals = {
    isJson: false,
    context: undefined,
    chosenOrganization: undefined,
    serverTimeoutMs: 10_000,
  };
  const require = (apiUrl: string) => requireHere({ ...config, ...globals, apiUrl }, 'engines');
  await require(`http://localhost:${port}`);
  await require('https://localhost');
  await assert.rejects(require('http://127.0.0.1:1'), {
    message: new RegExp(
      `is another server than that of the data folder ${folder}, which is at .*\\n  try: --path ${folder}`,
    ),
  });
});

test('a command of this machine says which data folder it works on', async () => {
  const { svc } = cli;
  const { folder } = svc.server.engine;
  for (const words of [
    ['org', 'ls'],
    ['org', 'create', 'acme'],
    ['org', 'quota', 'acme'],
    ['apikey', 'create', '--org', 'acme'],
    ['user', 'link'],
    ['audit', 'verify'],
    ['server', 'status'],
    ['server', 'keygen'],
    ['server', 'rotate-secrets'],
    ['engine', 'status'],
    ['pool', 'ls'],
    ['orphan', 'ls'],
    ['image', 'ls'],
    ['image', 'prune'],
  ]) {
    const { code, stdout, stderr } = await svc.run([...words, '--path', folder]);
    assert.equal(code, 0, stderr);
    assert.ok(`${stdout}${stderr}`.includes(folder), `${words.join(' ')}: ${stdout}${stderr}`);
  }
});
