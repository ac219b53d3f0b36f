import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { chmod, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { rotateSecrets } from '../local-commands/rotate-secrets.ts';
import { withStore } from '../local-commands/local-store.ts';
import { contextEnvContext, insertContext } from '../store/code-contexts.ts';
import type { Database } from '../store/database.ts';
import { createOrganization } from '../store/organizations.ts';
import { findOpenRun } from '../store/processes.ts';
import { findRegistryFor, putRegistry, registryContext } from '../store/registries.ts';
import { openRun } from '../store/runs.ts';
import { listSecrets, putSecret, secretContext } from '../store/secrets.ts';
import { insertWebhook, listWebhooks, rotateSecret, webhookContext } from '../store/webhooks.ts';
import { makeFolder } from '../testing/test-server.ts';
import { openSealer } from './open-sealer.ts';
import { reseal } from './reseal.ts';
import { Sealer } from './sealer.ts';
import { ensureSecretsKeys, readSecretsKeys } from './secrets-key.ts';
import { sandboxSecretsContext } from '../store/stored-secrets.ts';

const SANDBOX_ID = randomUUID();
const CONTEXT_ID = randomUUID();

/** A data folder whose store holds a registry password, a sandbox's secrets, a code context's variables and two secrets of a webhook, all sealed. */
async function makeStore(t: TestContext) {
  const place = { dataFolder: await makeFolder(t) };
  const keyPath = join(place.dataFolder, 'server', 'secrets.key');
  const organizationId = await withStore(place, async (database) => {
    await ensureSecretsKeys(keyPath);
    const sealer = await openSealer(keyPath, database);
    const { id } = await createOrganization(database, { slug: 'acme', name: 'Acme' });
    const seal = (registryId: string) => sealer.seal('hunter2', registryContext(registryId));
    await putRegistry(database, id, { host: 'ghcr.io', username: 'ann', seal });
    await putSecret(database, id, {
      name: 'KEY',
      allowedHosts: [],
      authorities: [],
      seal: (secretId) => sealer.seal('stored', secretContext(secretId)),
    });
    const hook = { url: 'https://example.com/', description: '', eventTypes: [], isEnabled: true };
    const webhook = await insertWebhook(database, id, hook, (own) =>
      sealer.seal('first', webhookContext(own)),
    );
    const second = sealer.seal('second', webhookContext(webhook.id));
    await rotateSecret(database, webhook, second, '2999-01-01T00:00:00.000Z');
    await addSandbox(database, id, sealer.seal('{"A":"secret"}', sandboxSecretsContext(SANDBOX_ID)));
    await addContext(database, id, sealer.seal('{"B":"hush"}', contextEnvContext(CONTEXT_ID)));
    return id;
  });
  const read = async (keys = readSecretsKeys(keyPath)) =>
    await withStore(place, async (database) => {
      const sealer = new Sealer(keys);
      const registry = await findRegistryFor(database, organizationId, 'ghcr.io');
      const sandbox = await database.selectFrom('sandboxes').select('secrets').executeTakeFirstOrThrow();
      const [secret] = await listSecrets(database, organizationId);
      const [webhook] = await listWebhooks(database, organizationId);
      const context = await database.selectFrom('code_contexts').select('env').executeTakeFirstOrThrow();
      return [
        sealer.open(registry?.sealedPassword ?? '', registryContext(registry?.id ?? '')),
        sealer.open(sandbox.secrets ?? '', sandboxSecretsContext(SANDBOX_ID)),
        sealer.open(context.env ?? '', contextEnvContext(CONTEXT_ID)),
        sealer.open(secret?.sealedValue ?? '', secretContext(secret?.id ?? '')),
        sealer.open(webhook?.sealedSecret ?? '', webhookContext(webhook?.id ?? '')),
        sealer.open(webhook?.previous?.sealedSecret ?? '', webhookContext(webhook?.id ?? '')),
      ];
    });
  return { place, keyPath, read };
}

test('a rotation seals every secret with the new key; none needs the old one', async (t) => {
  const { place, keyPath, read } = await makeStore(t);
  assert.equal(await rotateSecrets(place, { isResealOnly: false }), 6);
  const [newest, ...older] = readSecretsKeys(keyPath);
  assert.equal(older.length, 1);
  assert.deepEqual(await read([newest]), [
    'hunter2',
    '{"A":"secret"}',
    '{"B":"hush"}',
    'stored',
    'second',
    'first',
  ]);
  assert.equal(await rotateSecrets(place, { isResealOnly: true }), 0);
  assert.equal(await rotateSecrets(place, { isResealOnly: false }), 6);
  assert.deepEqual(await read(), ['hunter2', '{"A":"secret"}', '{"B":"hush"}', 'stored', 'second', 'first']);
});

test('a value that changed meanwhile is not overwritten by the rotation', async (t) => {
  const { place, keyPath, read } = await makeStore(t);
  const [old] = readSecretsKeys(keyPath);
  await withStore(place, async (database) => {
    const sealer = new Sealer([new Uint8Array(32).fill(1), old]);
    // As the server would, between the rotation's read and write.
    const open = sealer.open.bind(sealer);
    sealer.open = (sealed, context) => {
      if (context.startsWith('sandbox:'))
        void database.updateTable('sandboxes').set({ secrets: null }).execute();
      return open(sealed, context);
    };
    await reseal(database, sealer);
    const { secrets } = await database.selectFrom('sandboxes').select('secrets').executeTakeFirstOrThrow();
    assert.equal(secrets, null);
  });
  await assert.rejects(read());
});

test('a server whose key file was lost, swapped or opened to others says so and does not start', async (t) => {
  const { place, keyPath } = await makeStore(t);
  const start = async () =>
    await withStore(place, async (database) => {
      await openSealer(keyPath, database);
    });
  await start();
  await chmod(keyPath, 0o644);
  await assert.rejects(start(), /chmod 600/);
  await chmod(keyPath, 0o600);
  await rename(keyPath, `${keyPath}.lost`);
  await assert.rejects(start(), /6 secrets in the database were sealed with a key that is not in/);
});

async function addSandbox(database: Database, organizationId: string, secrets: string): Promise<void> {
  await database
    .insertInto('sandboxes')
    .values({
      id: SANDBOX_ID,
      organization_id: organizationId,
      name: 'web',
      slug: 'web',
      spec: '{}',
      ports: '[]',
      desired: 'stopped',
      observed: 'stopped',
      failure_message: null,
      secrets,
      created_at: '2026-01-01T00:00:00.000Z',
      started_at: null,
      ended_at: null,
      removed_at: null,
    })
    .execute();
}

async function addContext(database: Database, organizationId: string, sealedEnv: string): Promise<void> {
  const createdAt = '2026-01-01T00:00:00.000Z';
  const spec = { image: { type: 'oci', reference: 'x' } } as const;
  await openRun(database, { id: SANDBOX_ID, organizationId, spec }, createdAt);
  const runId = (await findOpenRun(database, SANDBOX_ID))?.id ?? '';
  const context = { id: CONTEXT_ID, sandboxId: SANDBOX_ID, runId, name: null, language: 'node', cwd: null };
  assert.equal(await insertContext(database, { ...context, sealedEnv, createdAt }, 1), 'added');
}
