import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { identifyProcess, isRunning, parseIdentity, writtenIdentity } from './process-identity.ts';

test('a process is known again by what was written down about it', () => {
  const identity = identifyProcess(process.pid);
  assert.ok(identity);
  assert.deepEqual(parseIdentity(writtenIdentity(identity)), identity);
  assert.equal(isRunning(identity), true);
});

test('another process with the same id is not taken for it', () => {
  const identity = identifyProcess(process.pid);
  assert.ok(identity);
  assert.equal(isRunning({ ...identity, startTicks: '1' }), false);
  assert.equal(isRunning({ ...identity, bootId: '00000000-0000-0000-0000-000000000000' }), false);
});

test('a zombie is not running', async () => {
  // The shell becomes a program that never waits for the child that ends at once.
  const parent = spawn('sh', ['-c', 'sh -c "echo \\$\\$" & exec sleep 30'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [chunk] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(chunk.toString());
  await waitUntil(() => identifyProcess(pid) === undefined, 'it has ended');
  parent.kill('SIGKILL');
  await once(parent, 'exit');
});

test('a note that a crash cut short is no identity', () => {
  const identity = identifyProcess(process.pid);
  assert.ok(identity);
  const text = writtenIdentity(identity);
  for (let length = 0; length < text.length; length++)
    assert.equal(parseIdentity(text.slice(0, length)), undefined);
});
