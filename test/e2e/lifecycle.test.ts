import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Events, Sandbox, SvcError, verifyWebhook, Webhooks } from '@svc/sdk';
import { startReceiver } from '../../packages/server/src/testing/webhook-receiver.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const cli = useCli(undefined, { args: ['--dev', '--allow-private-targets'] });

const clientOf = () => new Client({ apiUrl: cli.svc.server.url, apiKey: '' });

async function endings(sandbox: Sandbox): Promise<readonly unknown[]> {
  const all = await Array.fromAsync(Events.list({ type: 'sandbox_ending', client: sandbox.client }));
  return all
    .map(({ payload }) => payload as { sandbox_id: string; reason: string })
    .filter(({ sandbox_id: id }) => id === sandbox.id)
    .map(({ reason }) => reason);
}

const isOver = async (sandbox: Sandbox) => (await sandbox.refresh()).status === 'stopped';

test('an end that was put off comes when it was put to, is announced, and outlives the engine and the server', async (t) => {
  const { svc } = cli;
  const client = clientOf();
  // Takes the first message and never says so: the server is killed in between.
  const receiver = await startReceiver(t, (_hook, response) => {
    if (receiver.received.length > 1) response.end('taken');
  });
  const hook = ['webhook', 'create', receiver.url, '-e', 'sandbox_ending', '--description', 'ends'];
  const secret = (await svc.succeed(hook)).trim();
  const sandbox = await Sandbox.create({ client, image: BUSYBOX, name: 'long', maxDurationSeconds: 3600 });
  assert.deepEqual(await endings(sandbox), []);
  // So soon that it is announced at once, and so late that all can be started again before.
  assert.match(await svc.succeed(['update', '--ends-in', '58', 'long']), /^long ends at 20\d\d-/);
  await waitUntil(async () => (await endings(sandbox)).length === 1, { what: 'the end is announced' });
  await waitUntil(() => receiver.received.length === 1, { what: 'the webhook is called' });
  await svc.server.kill();
  await svc.server.engine.restart();
  await svc.server.launch();
  const after = await Sandbox.connect('long', { client: clientOf() });
  await waitUntil(async () => (await after.refresh()).status === 'running', { what: 'it runs on' });
  assert.deepEqual(await endings(after), ['max_duration']);
  await waitUntil(() => receiver.received.length === 2, { what: 'the webhook is called again' });
  const [lost, taken] = receiver.received;
  assert.ok(lost && taken);
  const message = await verifyWebhook(secret, taken.headers, taken.text);
  assert.deepEqual([message.type, lost.text], ['sandbox_ending', taken.text]);
  assert.equal(lost.headers['webhook-id'], taken.headers['webhook-id']);
  await after.setTimeout(1000);
  await waitUntil(() => isOver(after), { what: 'it ends' });
});

test('a webhook is tried, looked at, changed, given another secret and removed from the command line', async (t) => {
  const { svc } = cli;
  let status = 200;
  const receiver = await startReceiver(t, (_hook, response) => response.writeHead(status).end('said so'));
  const made = await svc.json([
    'webhook',
    'create',
    receiver.url,
    '-e',
    'snapshot.*',
    '-e',
    'quota_exceeded',
  ]);
  const { id, secret } = made as { readonly id: string; readonly secret: string };
  const tested = await svc.run(['webhook', 'test', id]);
  assert.deepEqual([tested.code, tested.stdout], [0, '']);
  assert.match(tested.stderr, /^taken with 200 after \d+ ms$/m);
  const renewed = await svc.run(['webhook', 'rotate', '--overlap', '1h', id]);
  assert.match(renewed.stdout, /^whsec_\S+\n$/);
  assert.match(renewed.stderr, new RegExp(`^webhook ${id}; try it with: svc webhook test ${id}`, 'm'));
  status = 418;
  const refused = await svc.run(['webhook', 'test', id]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^not taken: it answered 418\n {2}\| said so$/m);
  const last = receiver.received.at(-1);
  assert.ok(last);
  for (const known of [secret, renewed.stdout.trim()]) {
    const message = await verifyWebhook(known, last.headers, last.text);
    assert.deepEqual(message.data, { webhook_id: id });
  }
  const log = await svc.succeed(['webhook', 'deliveries', '-n', '2', id]);
  assert.match(log, /webhook_test +failed +1 +418 +it answered 418/);
  const [delivery] = (await svc.json(['webhook', 'deliveries', '-n', '1', id])) as { readonly id: string }[];
  status = 204;
  await svc.succeed(['webhook', 'redeliver', id, delivery?.id ?? '']);
  assert.match(await svc.succeed(['webhook', 'deliveries', id]), /webhook_test +succeeded +2 +204 +-/);
  await svc.succeed(['webhook', 'update', '--disable', '--description', 'ours', '-e', '*', id]);
  assert.match(await svc.succeed(['webhook', 'ls']), new RegExp(`${id} +${receiver.url} +\\* +disabled `));
  await svc.succeed(['webhook', 'update', '--enable', '--url', `${receiver.url}/2`, id]);
  const shown = JSON.parse(await svc.succeed(['webhook', 'inspect', id]));
  assert.partialDeepStrictEqual(shown, { enabled: true, description: 'ours', url: `${receiver.url}/2` });
  assert.ok(!JSON.stringify(shown).includes('whsec_'));
  const completed = await svc.succeed(['complete-words', '--', 'webhook', 'inspect', id.slice(0, 8)]);
  assert.equal(completed, `${id}\n`);
  assert.match(
    await svc.succeed(['complete-words', '--', 'webhook', 'create', '-e', 'sandbox_e']),
    /^sandbox_ending$/m,
  );
  const nothing = await svc.run(['webhook', 'update', id]);
  assert.deepEqual([nothing.code, /say what to change/.test(nothing.stderr)], [2, true], nothing.stderr);
  assert.equal(await svc.succeed(['webhook', 'rm', id]), `${id}\n`);
  assert.ok(!(await svc.succeed(['webhook', 'ls', '-q'])).includes(id));
  assert.ok(!(await Webhooks.list({ client: clientOf() })).some((webhook) => webhook.id === id));
  const gone = await svc.run(['webhook', 'inspect', id]);
  assert.match(gone.stderr, /There is no webhook/);
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
