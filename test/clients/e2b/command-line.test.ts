import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { waitUntil } from '@svc/contract/testing';
import { E2bClients } from './start-e2b.ts';

const E2B = join(import.meta.dirname, 'node_modules/.bin/e2b');

let clients: E2bClients;
let sandbox: Sandbox;
before(async () => {
  clients = await E2bClients.start('base');
  sandbox = await Sandbox.create(clients.options);
});
after(() => clients.destroy());

const e2b = async (...words: readonly string[]) => await clients.run(process.execPath, [E2B, ...words]);

/** What a command that must succeed has printed. */
async function done(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await e2b(...words);
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout;
}

test('sandboxes are listed, shown, used and killed', async () => {
  const { sandboxId: id } = sandbox;
  assert.match(await done('sandbox', 'list'), new RegExp(`${id} +base`));
  assert.match(await done('sandbox', 'info', id), /State: running/);
  assert.equal(await done('sandbox', 'exec', id, '--', 'echo', 'by', 'cli'), 'by cli\n');
  assert.equal((await e2b('sandbox', 'exec', id, 'exit 4')).code, 4);
  assert.match(await done('sandbox', 'metrics', id), /Metrics for sandbox/);
  assert.match(await done('sandbox', 'logs', id), /running/);
  const paused = await e2b('sandbox', 'pause', id);
  assert.match(`${paused.stdout}${paused.stderr}`, /pause is not offered yet/);
  assert.match(await done('sandbox', 'kill', id), /has been killed/);
  assert.equal(await sandbox.isRunning(), false);
});

test('a sandbox is made with a terminal, and ends with it', async () => {
  const words = [process.execPath, E2B, 'sandbox', 'create', 'base'].join(' ');
  const typed = { after: 'user@', text: 'echo $((6*7)); exit\n' };
  const { stdout } = await clients.run('script', ['-qec', words, '/dev/null'], { typed });
  assert.match(stdout, /42/);
  await waitUntil(async () => (await Sandbox.list(clients.options).nextItems()).length === 0, {
    what: 'the sandbox is gone',
  });
});

test('snapshots are made, listed as templates, and deleted; builds are refused', async () => {
  const box = await Sandbox.create(clients.options);
  await done('sandbox', 'snapshot', 'create', box.sandboxId, '--name', 'by-cli');
  assert.match(await done('sandbox', 'snapshot', 'list'), /by-cli/);
  assert.match(await done('template', 'list'), /by-cli/);
  await box.kill();
});
