import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { engineCommand } from './engine-command.ts';

test('an engine does not outlive the process that signals for it go to', async () => {
  const [program, ...args] = engineCommand('/nowhere', []);
  const wrapper = args.slice(0, args.indexOf(process.execPath));
  const engine = ['sh', '-c', 'echo here; exec sleep 1000'];
  const child = spawn(program, [...wrapper, ...engine], { stdio: ['ignore', 'pipe', 'ignore'] });
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  // Both hold the pipe; it closes when the last of them is gone.
  const [, signal] = (await closed) as [number | null, string | null];
  assert.equal(signal, 'SIGKILL');
});
