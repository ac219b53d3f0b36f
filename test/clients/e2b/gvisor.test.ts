import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sandbox } from '@e2b/code-interpreter';
import { CommandExitError, TimeoutError } from 'e2b';
import { waitUntil } from '@svc/contract/testing';
import { E2bClients } from './start-e2b.ts';

// What depends on the kernel of the sandbox: the other test files have class container.
let clients: E2bClients;
let sandbox: Sandbox;
before(async () => {
  clients = await E2bClients.startWith([], ['base', 'code'], 'gvisor');
  sandbox = await Sandbox.create({ ...clients.options, timeoutMs: 600_000 });
});
after(() => clients.destroy());

const run = async (command: string, options: object = {}) =>
  (await sandbox.commands.run(command, options)).stdout;

test('commands in gVisor: user, exit, signal and timeout', async () => {
  assert.match(await run('cat /proc/version'), /^Linux version 4\.4\.0 /);
  assert.equal(await run('whoami; pwd; stat -c %U .'), 'user\n/home/user\nuser\n');
  await assert.rejects(run('exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3);
  await assert.rejects(run('kill -TERM $$'), (error) => {
    return error instanceof CommandExitError && error.message.includes('signal: terminated');
  });
  await assert.rejects(run('sleep 1234', { timeoutMs: 500 }), TimeoutError);
  await waitUntil(async () => !(await run('ps -eo args')).includes('sleep 1234'), { what: 'it is gone' });
});

test('a command in the background and a terminal in gVisor', async () => {
  const cat = await sandbox.commands.run('cat', { background: true, stdin: true });
  await sandbox.commands.sendStdin(cat.pid, 'typed');
  await sandbox.commands.closeStdin(cat.pid);
  assert.equal((await cat.wait()).stdout, 'typed');
  let seen = '';
  const onData = (data: Uint8Array) => void (seen += new TextDecoder().decode(data));
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData });
  await sandbox.pty.resize(terminal.pid, { cols: 123, rows: 45 });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'));
  assert.equal((await terminal.wait()).exitCode, 0);
  assert.match(seen, /45 123/);
});

test('files in gVisor: owner, moves and changes that are watched; metadata is refused', async () => {
  const { files } = sandbox;
  const seen: string[] = [];
  await files.makeDir('/home/user/watched');
  const watch = await files.watchDir(
    '/home/user/watched',
    ({ type, name }) => void seen.push(`${type} ${name}`),
  );
  await files.write('/home/user/watched/a', 'x'.repeat(3_000_000));
  const moved = await files.rename('/home/user/watched/a', '/home/user/watched/b');
  assert.deepEqual([moved.owner, moved.size], ['user', 3_000_000]);
  await files.remove('/home/user/watched/b');
  const wanted = ['create a', 'write a', 'rename a', 'create b', 'remove b'];
  await waitUntil(() => wanted.every((each) => seen.includes(each)), {
    what: `${wanted.join()} are reported`,
  });
  await watch.stop();
  const refused = files.write('/home/user/meta', 'x', { metadata: { purpose: 'a test' } });
  await assert.rejects(refused, /no extended attributes .* leave the metadata out/);
  assert.equal(await run('ls -A /home/user | grep -E "meta|partial"; true'), '');
  const range = { headers: { range: 'bytes=1-2' } };
  await files.write('/tmp/part', '0123');
  assert.equal(await (await fetch(await sandbox.downloadUrl('/tmp/part'), range)).text(), '12');
});

test('code in gVisor: values, their number, variables of one execution, and a chart', async () => {
  const { text, executionCount, logs } = await sandbox.runCode('print("said"); x = 20; x + 1');
  assert.deepEqual([text, executionCount, logs.stdout], ['21', 1, ['said\n']]);
  const given = await sandbox.runCode('import os; os.environ.get("ONCE")', { envs: { ONCE: 'here' } });
  assert.deepEqual([given.text, given.executionCount], ['here', 2]);
  assert.equal((await sandbox.runCode('os.environ.get("ONCE")')).text, undefined);
  const { results } = await sandbox.runCode(
    'import matplotlib.pyplot as plt; plt.bar(["a"], [3]); plt.show()',
  );
  assert.ok((results[0]?.png?.length ?? 0) > 1000);
  assert.partialDeepStrictEqual(results[0]?.chart, { type: 'bar', elements: [{ label: 'a', value: 3 }] });
  const counted = await sandbox.runCode('6 * 7', { language: 'javascript' });
  assert.deepEqual([counted.text, counted.executionCount], ['42', 1]);
});
