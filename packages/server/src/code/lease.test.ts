import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { TestSandbox } from '../testing/code-sandbox.ts';
import { createCodeRunner } from './code-runner.ts';

const never = new AbortController().signal;

test('code has a lease while it runs; an interpreter that waits has none, also when its server leaves at once', async (t) => {
  const sandbox = await TestSandbox.start();
  t.after(() => sandbox.stop());
  const leases: (number | null)[] = [];
  const openChannel = async (_sandboxId: string, signal: AbortSignal) => {
    const channel = await sandbox.openChannel(signal);
    const setTimeout = channel.detached.setTimeout.bind(channel.detached);
    channel.detached.setTimeout = async (key, milliseconds) => {
      leases.push(milliseconds);
      await setTimeout(key, milliseconds);
    };
    return channel;
  };
  const runner = createCodeRunner({ openChannel, logger: pino({ level: 'silent' }) });
  const run = (code: string) =>
    runner.run({ sandboxId: 's', language: 'python', code, timeoutMs: 60_000 }, never);
  const untilEnded = () => waitUntil(() => leases.at(-1) === null, { what: 'the end of the lease' });
  await run('1');
  await untilEnded();
  const lease = leases[0] ?? null;
  assert.ok(lease !== null && lease > 0);
  assert.deepEqual(leases.splice(0), [lease, null]);
  // Each begins before the lease of the one before has ended, and keeps it.
  await Promise.all([run('1'), run('import time; time.sleep(0.2)'), run('1')]);
  await untilEnded();
  assert.deepEqual(leases.splice(0), [lease, null]);
  await run('1');
  runner.close();
  assert.deepEqual(leases, [lease, null]);
});
