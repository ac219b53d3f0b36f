import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Events, Sandbox, SvcError } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const cli = useCli(undefined, { args: ['--dev'] });

const clientOf = () => new Client({ apiUrl: cli.svc.server.url, apiKey: '' });

async function endings(sandbox: Sandbox): Promise<readonly unknown[]> {
  const all = await Array.fromAsync(Events.list({ type: 'sandbox_ending', client: sandbox.client }));
  return all
    .map(({ payload }) => payload as { sandbox_id: string; reason: string })
    .filter(({ sandbox_id: id }) => id === sandbox.id)
    .map(({ reason }) => reason);
}

const isOver = async (sandbox: Sandbox) => (await sandbox.refresh()).status === 'stopped';

test('an end that was put off comes when it was put to, is announced, and outlives the engine and the server', async () => {
  const { svc } = cli;
  const client = clientOf();
  const sandbox = await Sandbox.create({ client, image: BUSYBOX, name: 'long', maxDurationSeconds: 3600 });
  assert.deepEqual(await endings(sandbox), []);
  assert.match(await svc.succeed(['update', '--ends-in', '40', 'long']), /^long ends at 20\d\d-/);
  await waitUntil(async () => (await endings(sandbox)).length === 1, { what: 'the end is announced' });
  await svc.server.kill();
  await svc.server.engine.restart();
  await svc.server.launch();
  const after = await Sandbox.connect('long', { client: clientOf() });
  await waitUntil(async () => (await after.refresh()).status === 'running', { what: 'it runs on' });
  assert.deepEqual(await endings(after), ['max_duration']);
  await after.setTimeout(1000);
  await waitUntil(() => isOver(after), { what: 'it ends' });
});

test('idle time is changed and begun anew while a sandbox runs', async () => {
  const { svc } = cli;
  const sandbox = await Sandbox.create({ client: clientOf(), image: BUSYBOX, name: 'idle' });
  await svc.succeed(['update', '--max-duration', 'none', '--idle-timeout', '1h', 'idle']);
  await sandbox.keepAlive();
  await svc.succeed(['update', '--keep-alive', 'idle']);
  await sandbox.setLifecycle({ idleTimeoutSecs: 4 });
  sandbox.close();
  await waitUntil(async () => (await endings(sandbox)).includes('idle_timeout'), { what: 'it is announced' });
  await waitUntil(() => isOver(sandbox), { what: 'it ends' });
  await assert.rejects(sandbox.keepAlive(), (error) => SvcError.is(error, 'sandbox_not_running'));
  const nothing = await svc.run(['update', 'idle']);
  assert.deepEqual([nothing.code, /--ends-in 30m/.test(nothing.stderr)], [2, true], nothing.stderr);
});
