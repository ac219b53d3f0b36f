import assert from 'node:assert/strict';
import { appendFile } from 'node:fs/promises';
import { createKey } from '@svc/server/keys';
import { claimOnce, provedBy, type Claim } from '../claim.ts';
import type { Json } from '../ground.ts';
import { optionedServer } from '../optioned-server.ts';

const LOCAL_TEST = 'packages/server/src/local-commands/local.test.ts';
const MADE_FROM_NOTHING = 'an organization, its owner, a key and a token are made from nothing, and work';
const CLI_TEST = 'test/e2e/cli-server.test.ts';
const FLOW = 'start, status, logs and stop print the state and the next command, each with its exit code';

export const serverCommandClaims: readonly Claim[] = [
  provedBy('svc server stop', 'Stops the server; its sandboxes run on', CLI_TEST, FLOW),
  claimOnce('svc server status', 'Tells whether the server asks for a key', 'its words', async (ground) => {
    assert.match(await ground.cli(['server', 'status']), /^authentication: required/m);
  }),
  claimOnce('svc server status --json', 'The same for programs', 'its fields', async (ground) => {
    const status: Json = JSON.parse(await ground.cli(['server', 'status', '--json']));
    assert.deepEqual(
      [status.running, status.url, status.authentication_required],
      [true, ground.server.url, true],
    );
  }),
  claimOnce(
    'svc server keygen',
    'Makes a key that never expires and reaches every namespace',
    'what it prints, and that the key is taken',
    async (ground) => {
      const key = (await ground.cli(['server', 'keygen'])).trimEnd();
      const { expires, namespace }: Json = JSON.parse(await ground.cli(['server', 'keygen', '--json']));
      assert.deepEqual([expires, namespace], [null, '*']);
      assert.equal((await ground.rpc('sandbox.metrics.get', { namespace: '*' }, key)).error, undefined);
    },
  ),
  claimOnce(
    'svc server keygen --expire',
    'When it expires: a number and s, m, h, d, w, mo or y',
    'each unit; another is refused with the units; an expired key is 401',
    async (ground) => {
      const seconds = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, mo: 2_592_000, y: 31_536_000 };
      for (const [unit, length] of Object.entries(seconds)) {
        const { expiresAt } = await createKey(ground.server.engine.folder, { expire: `2${unit}` });
        const left = (Date.parse(expiresAt ?? '') - Date.now()) / 1000;
        assert.ok(left <= 2 * length && left > 2 * length - 60, unit);
      }
      const { expires }: Json = JSON.parse(
        await ground.cli(['server', 'keygen', '--json', '--expire', '1h']),
      );
      assert.ok(Date.parse(expires) > Date.now());
      await assert.rejects(ground.cli(['server', 'keygen', '--expire', '1f']), /s seconds, m minutes/);
    },
  ),
  claimOnce(
    'svc server keygen --namespace',
    'Limits it to the sandboxes of one namespace; combines with the expiry',
    'what it prints for both',
    async (ground) => {
      const words = ['server', 'keygen', '--json', '--namespace', 'ci', '--expire', '1d'];
      const { token, namespace, expires }: Json = JSON.parse(await ground.cli(words));
      assert.deepEqual([namespace, typeof expires], ['ci', 'string']);
      const { error } = await ground.rpc('sandbox.metrics.get', { namespace: 'other' }, token);
      assert.equal(error?.code, -32_002);
    },
  ),
  claimOnce('svc server keygen --json', 'The same for programs', 'its fields', async (ground) => {
    const made: Json = JSON.parse(await ground.cli(['server', 'keygen', '--json']));
    assert.deepEqual(Object.keys(made), ['token', 'expires', 'namespace']);
    assert.deepEqual([made.expires, made.namespace], [null, '*']);
  }),
  claimOnce(
    'svc server keygen --quiet',
    'Prints the key and nothing else, so that it fits into a variable',
    'what it prints is a key that is taken',
    async (ground) => {
      const key = (await ground.cli(['server', 'keygen', '--quiet'])).trimEnd();
      assert.match(key, /^svc_\S+$/);
      assert.equal((await ground.rpc('sandbox.metrics.get', { namespace: '*' }, key)).error, undefined);
    },
  ),
  provedBy('svc server keygen --database', 'In the store of this PostgreSQL', LOCAL_TEST, MADE_FROM_NOTHING),
  provedBy(
    'svc server rotate-secrets',
    'Seals secrets with a new key',
    'test/e2e/rest-organizations.test.ts',
    'secrets are sealed anew while the server runs, and the server seals with the new key',
    { covers: ['svc server rotate-secrets --reseal-only', 'svc server rotate-secrets --secrets-key'] },
  ),
  provedBy(
    'svc server rotate-secrets --database',
    'In the store of this PostgreSQL',
    LOCAL_TEST,
    MADE_FROM_NOTHING,
  ),
  claimOnce(
    'svc server logs',
    'Shows what the server logs',
    'a line that every server logs',
    async (ground) => {
      assert.match(await ground.cli(['server', 'logs']), /the server listens/);
    },
  ),
  claimOnce('svc server logs --tail', 'Only the last lines', 'how many there are', async (ground) => {
    assert.equal((await ground.cli(['server', 'logs', '--tail', '1'])).trimEnd().split('\n').length, 1);
  }),
  claimOnce(
    'svc server logs --follow',
    'Goes on with what is logged from now on',
    'a line that is written while it is followed',
    async (ground) => {
      const { folder } = await optionedServer(ground);
      const child = ground.spawn(['server', 'logs', '-f', '--tail', '1', '--path', folder]);
      try {
        let printed = '';
        child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
        await ground.wait(() => Promise.resolve(printed !== ''), 'what was logged before');
        await appendFile(`${folder}/server.log`, '{"level":40,"time":0,"msg":"something new"}\n');
        await ground.wait(() => Promise.resolve(printed.includes('something new')), 'what is logged now');
      } finally {
        child.kill();
      }
    },
  ),
];
