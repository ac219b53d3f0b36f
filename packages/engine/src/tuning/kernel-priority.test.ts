import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { raiseKernelPriority } from './kernel-priority.ts';

const RAISED = -10;

test('all threads of the processes are raised, their children and other processes are not', async (t) => {
  const script = `
    const { Worker } = require('node:worker_threads');
    const { spawn } = require('node:child_process');
    const child = spawn('sleep', ['60']);
    new Worker('setInterval(() => {}, 1000); require("node:worker_threads").parentPort.postMessage(0)', { eval: true })
      .on('message', () => console.log(child.pid));`;
  const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const child = Number(line);
  t.after(() => process.kill(child, 'SIGKILL'));
  const pid = parent.pid ?? 0;
  const before = getPriority();
  for (let repeated = 0; repeated < 2; repeated++) {
    raiseKernelPriority([pid]);
    const priorities = readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread)));
    assert.ok(priorities.length > 1);
    assert.deepEqual(new Set(priorities), new Set([RAISED]));
  }
  assert.equal(getPriority(child), before);
  assert.equal(getPriority(), before);
});

test('a process that has ended is left out', async () => {
  const child = spawn('true');
  await once(child, 'exit');
  raiseKernelPriority([child.pid ?? 0]);
});
