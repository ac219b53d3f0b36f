import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createApiKey, createToken, hashSecret } from '../store/api-keys-and-tokens.ts';
import type { Database } from '../store/database.ts';
import { appendEvent } from '../store/events.ts';
import { ensureOrganization, putMember } from '../store/organizations.ts';
import { createPreviewToken } from '../store/preview-tokens.ts';
import { addSshKey } from '../store/ssh-keys.ts';
import { ensureUser } from '../store/users.ts';
import { insertTest } from '../store/webhook-deliveries.ts';
import { insertWebhook } from '../store/webhooks.ts';
import { startTestServer, type RestOptions, type TestServer } from './test-server.ts';

/** Two organizations on one server: a victim that has a resource of each kind, and an attacker. */
export interface Tenants {
  readonly victim: Victim;
  readonly attacker: { readonly key: string; readonly ownerToken: string };
  send(
    method: string,
    path: string,
    options: RestOptions,
  ): Promise<{ readonly status: number; readonly text: string }>;
  /** A digest of everything that belongs to the victim. */
  fingerprint(): Promise<string>;
  close(): Promise<void>;
}

interface Victim {
  readonly slug: string;
  readonly key: string;
  readonly ownerToken: string;
  readonly adminToken: string;
  readonly memberToken: string;
  readonly revokedKey: string;
  readonly expiredKey: string;
  readonly revokedToken: string;
  readonly expiredToken: string;
  /** Path parameters by name, or by `tag.name`. */
  readonly ids: Readonly<Record<string, string>>;
  /** Texts that only the victim may read. */
  readonly secrets: readonly string[];
}

const SECRET_WORD = 'crown-jewels';
const IMAGE = 'registry.example/app';
const NOW = new Date().toISOString();

export async function createTenants(): Promise<Tenants> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-tenants-'));
  const closers: (() => unknown)[] = [];
  // Closed in `close`, because this fixture serves a whole file of tests.
  const context = { after: (closer: () => unknown) => void closers.push(closer) } as unknown as TestContext;
  const server = await startTestServer(context, { signingKey: new Uint8Array(32).fill(3), folder });
  const { database } = server;
  const { victim, organizationId } = await createVictim(database);
  // Its name is a secret of the victim's, so that no list of images may show it to others.
  for (const reference of [IMAGE, `registry.example/${SECRET_WORD}`])
    await server.orchestrator.pullImage({ reference, scope: organizationId }, () => undefined);
  const attackerId = await ensureOrganization(database, 'attacker');
  const attacker = await ensureUser(database, 'attacker@example.com');
  await putMember(database, attackerId, attacker.id, 'owner');
  return {
    victim,
    attacker: {
      key: await issueKey(database, attackerId),
      ownerToken: await issueToken(database, attacker.id),
    },
    send: (method, path, options) => send(server, method, path, options),
    fingerprint: () => fingerprintOf(database, organizationId),
    close: async () => {
      for (const closer of closers) await closer();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function send(server: TestServer, method: string, path: string, options: RestOptions) {
  const { status, body } = await server.rest(method, path, options);
  return { status, text: Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body) };
}

async function createVictim(db: Database): Promise<{ victim: Victim; organizationId: string }> {
  const organizationId = await ensureOrganization(db, 'victim');
  const people = await Promise.all(
    (['owner', 'admin', 'member'] as const).map(async (role) => {
      const user = await ensureUser(db, `${role}@victim.example`);
      await putMember(db, organizationId, user.id, role);
      return { userId: user.id, token: await issueToken(db, user.id) };
    }),
  );
  const [owner, admin, member] = people;
  if (owner === undefined || admin === undefined || member === undefined) throw new Error('three were made');
  const expired = new Date(Date.now() - 1000).toISOString();
  const revokedKey = await issueKey(db, organizationId);
  const revokedToken = await issueToken(db, owner.userId);
  await db
    .updateTable('api_keys')
    .set({ revoked_at: NOW })
    .where('hash', '=', hashSecret(revokedKey))
    .execute();
  await db
    .updateTable('tokens')
    .set({ revoked_at: NOW })
    .where('hash', '=', hashSecret(revokedToken))
    .execute();
  const ids = await fillOrganization(db, organizationId, owner.userId);
  const victim: Victim = {
    slug: 'victim',
    key: await issueKey(db, organizationId),
    ownerToken: owner.token,
    adminToken: admin.token,
    memberToken: member.token,
    revokedKey,
    revokedToken,
    expiredKey: await issueKey(db, organizationId, expired),
    expiredToken: await issueToken(db, owner.userId, expired),
    ids: { ...ids, user_id: member.userId, 'images.reference': IMAGE },
    secrets: [SECRET_WORD, organizationId, '@victim.example', ...Object.values(ids)].filter(isIdentifying),
  };
  return { victim, organizationId };
}

/** Names and ids from the request's path may be repeated in an answer; they reveal nothing new to the caller. */
function isIdentifying(text: string): boolean {
  return text === SECRET_WORD || text.includes('@');
}

async function fillOrganization(
  db: Database,
  organizationId: string,
  ownerId: string,
): Promise<Readonly<Record<string, string>>> {
  const common = { organization_id: organizationId, created_at: NOW };
  const sandboxId = randomUUID();
  await db
    .insertInto('sandboxes')
    .values({
      ...common,
      id: sandboxId,
      name: 'target',
      slug: 'target-slug',
      spec: JSON.stringify({
        image: { type: 'oci', reference: 'python' },
        env: [{ key: 'A', value: SECRET_WORD }],
      }),
      ports: '[]',
      desired: 'stopped',
      observed: 'stopped',
      failure_message: SECRET_WORD,
      updated_at: NOW,
      state_since: NOW,
      started_at: null,
      ended_at: null,
      removed_at: null,
    })
    .execute();
  const volumeId = randomUUID();
  await db
    .insertInto('volumes')
    .values({
      ...common,
      id: volumeId,
      kind: 'managed',
      name: 'target',
      capacity_gib: 1,
      labels: JSON.stringify({ note: SECRET_WORD }),
      status: 'active',
      is_made: 1,
      updated_at: NOW,
      removed_at: null,
    })
    .execute();
  return {
    name: 'target',
    sandbox_id: sandboxId,
    id: volumeId,
    context_id: 'target',
    process_id: await addProcess(db, organizationId, sandboxId),
    ...(await addSnapshot(db, organizationId, sandboxId)),
    ...(await addAccess(db, organizationId, sandboxId, ownerId)),
    ...(await addPaperwork(db, organizationId, ownerId)),
    ...(await addWebhook(db, organizationId)),
  };
}

async function addProcess(db: Database, organizationId: string, sandboxId: string): Promise<string> {
  const [id, runId] = [randomUUID(), randomUUID()];
  const common = { organization_id: organizationId, sandbox_id: sandboxId, started_at: NOW, ended_at: NOW };
  const sizes = { vcpus: 1, memory_mib: 64, disk_mib: 64 };
  await db
    .insertInto('runs')
    .values({ ...common, ...sizes, id: runId, end_reason: 'stopped' })
    .execute();
  await db
    .insertInto('processes')
    .values({
      ...common,
      id,
      run_id: runId,
      name: 'target',
      pid: 7,
      command: JSON.stringify([SECRET_WORD]),
      is_tty: 0,
      exit: JSON.stringify({ code: 1, signal: null, reason: 'exit', killedBy: null, message: SECRET_WORD }),
      stdout_bytes: 0,
      stderr_bytes: 0,
    })
    .execute();
  return id;
}

async function addSnapshot(db: Database, organizationId: string, sandboxId: string) {
  const snapshotId = randomUUID();
  const operationId = randomUUID();
  const common = {
    organization_id: organizationId,
    sandbox_id: sandboxId,
    sandbox_name: 'target',
    created_at: NOW,
  };
  await db
    .insertInto('snapshots')
    .values({
      ...common,
      id: snapshotId,
      name: 'target',
      digest: `sha256:${SECRET_WORD}`,
      size_bytes: 1,
      manifest: '{}',
      labels: '{}',
      removed_at: null,
    })
    .execute();
  await db
    .insertInto('snapshot_operations')
    .values({
      ...common,
      id: operationId,
      snapshot_id: snapshotId,
      snapshot_name: 'target',
      request: '{"labels":{},"shouldReplace":false}',
      status: 'failed',
      error: JSON.stringify({ code: 'internal', message: SECRET_WORD }),
      updated_at: NOW,
      completed_at: NOW,
    })
    .execute();
  return { snapshot_id: snapshotId, operation_id: operationId };
}

async function addAccess(db: Database, organizationId: string, sandboxId: string, ownerId: string) {
  const { preview } = await createPreviewToken(db, {
    sandbox: { id: sandboxId, organizationId },
    port: 3000,
    expiresAt: null,
  });
  const key = { name: SECRET_WORD, publicKey: `ssh-ed25519 ${SECRET_WORD}`, fingerprint: 'SHA256:x' };
  const added = await addSshKey(db, { userId: ownerId, ...key });
  return { preview_id: preview.id, 'ssh keys.id': added?.id ?? '' };
}

async function addPaperwork(db: Database, organizationId: string, ownerId: string) {
  await appendEvent(db, {
    organizationId,
    type: 'sandbox_created',
    category: 'sandbox',
    actor: { kind: 'system', code: 'test', label: SECRET_WORD },
    payload: { note: SECRET_WORD },
    requestId: null,
    sourceAddress: null,
  });
  const event = await db
    .selectFrom('events')
    .select('id')
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow();
  const inviteId = randomUUID();
  await db
    .insertInto('invites')
    .values({
      id: inviteId,
      organization_id: organizationId,
      email: 'invited@victim.example',
      role: 'member',
      token_hash: hashSecret('invitation'),
      invited_by: ownerId,
      created_at: NOW,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
    .execute();
  const registryId = randomUUID();
  await db
    .insertInto('registries')
    .values({
      id: registryId,
      organization_id: organizationId,
      registry_host: 'registry.example',
      username: SECRET_WORD,
      password: 'sealed',
      created_at: NOW,
      updated_at: NOW,
    })
    .execute();
  const key = await createApiKey(db, organizationId, { name: SECRET_WORD, createdBy: null, expiresAt: null });
  const token = await createToken(db, ownerId, { name: SECRET_WORD, createdBy: null, expiresAt: null });
  return {
    event_id: event.id,
    invite_id: inviteId,
    // The token is valid for the invited person only; an attacker guesses.
    token: 'guess',
    invoice_id: randomUUID(),
    'registries.id': registryId,
    'api keys.id': key.id,
    'tokens.id': token.id,
  };
}

async function addWebhook(db: Database, organizationId: string) {
  const url = `https://example.com/${SECRET_WORD}`;
  const settings = { url, description: SECRET_WORD, eventTypes: [], isEnabled: false };
  const { id } = await insertWebhook(db, organizationId, settings, () => SECRET_WORD);
  const delivery = await insertTest(db, id, { owner: 'test', leaseMs: 0 });
  return { webhook_id: id, delivery_id: delivery.id };
}

async function issueKey(db: Database, organizationId: string, expiresAt: string | null = null) {
  const { secret } = await createApiKey(db, organizationId, { name: 'test', createdBy: null, expiresAt });
  return secret;
}

async function issueToken(db: Database, userId: string, expiresAt: string | null = null) {
  const { secret } = await createToken(db, userId, { name: 'test', createdBy: null, expiresAt });
  return secret;
}

async function fingerprintOf(db: Database, organizationId: string): Promise<string> {
  const tables = [
    'sandboxes',
    'volumes',
    'snapshots',
    'snapshot_operations',
    'processes',
    'members',
    'invites',
    'api_keys',
    'preview_tokens',
    'registries',
    'webhooks',
    'events',
  ] as const;
  const hash = createHash('sha256');
  for (const table of tables) {
    const rows = await db
      .selectFrom(table)
      .selectAll()
      .where('organization_id', '=', organizationId)
      .execute();
    // A key's last use is not part of the organization's data.
    const lines = rows.map((row) => JSON.stringify({ ...row, last_used_at: null })).toSorted();
    hash.update(`${table}\n${lines.join('\n')}\n`);
  }
  const organization = await db
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow();
  return hash.update(JSON.stringify(organization)).digest('hex');
}
