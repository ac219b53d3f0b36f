import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { describeLockHolder, findLockHolder } from './lock-holder.ts';

const NAME = `svc-test-holder-${process.pid}`;
const USER = 54_321;
const LISTEN = `require('node:net').createServer().listen('\\0${NAME}', () => console.log('ready'))`;

test('a lock that another user of the host took is told with its process, one of our own is not', async (t) => {
  assert.equal(findLockHolder(NAME), undefined);
  const asUser = [
    `--reuid=${USER}`,
    `--regid=${USER}`,
    '--clear-groups',
    '--',
    process.execPath,
    '-e',
    LISTEN,
  ];
  const holder = spawn('setpriv', asUser, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  assert.deepEqual(findLockHolder(NAME), { pid: holder.pid, uid: USER });
  assert.match(
    describeLockHolder(NAME, '/') ?? '',
    new RegExp(`process ${holder.pid} of user ${USER} holds its lock`),
  );
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const own = createServer().listen(`\0${NAME}`);
  t.after(() => own.close());
  await once(own, 'listening');
  assert.equal(findLockHolder(NAME)?.pid, process.pid);
  assert.equal(describeLockHolder(NAME, '/'), undefined);
});
