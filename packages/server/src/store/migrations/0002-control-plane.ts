import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const controlPlane: Migration = { up };

async function up(db: Kysely<unknown>): Promise<void> {
  await createPlans(db);
  await extendOrganizations(db);
  await createPeople(db);
  await createCredentials(db);
  await extendSandboxes(db);
  await extendRuns(db);
  await createProcesses(db);
  await createVolumes(db);
  await createSnapshots(db);
  await createEvents(db);
  await createIdempotency(db);
  await createMetricSamples(db);
}

async function createPlans(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('plans')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .execute();
}

async function extendOrganizations(db: Kysely<unknown>): Promise<void> {
  const add = async (name: string, type: 'text' | 'integer' | 'bigint', initial?: string | number) => {
    const alter = db.schema.alterTable('organizations');
    await alter
      .addColumn(name, type, (column) =>
        initial === undefined ? column : column.notNull().defaultTo(initial),
      )
      .execute();
  };
  await add('name', 'text');
  await add('updated_at', 'text');
  await add('deleted_at', 'text');
  await add('mfa_required', 'integer', 0);
  await add('plan', 'text', 'self_hosted');
  await add('quotas', 'text', '{}');
  await add('is_suspended', 'integer', 0);
  await add('event_sequence', 'bigint', 0);
  await add('event_hash', 'text', '');
  await add('event_timestamp', 'text', '');
}

async function createPeople(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('users')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('email', 'text', (column) => column.notNull().unique())
    .addColumn('display_name', 'text')
    .addColumn('avatar_url', 'text')
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('members')
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('user_id', 'text', (column) => column.notNull().references('users.id'))
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('members_pk', ['organization_id', 'user_id'])
    .execute();
  await sql`create index members_user on members (user_id)`.execute(db);
  await db.schema
    .createTable('invites')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('token_hash', 'text', (column) => column.notNull().unique())
    .addColumn('invited_by', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create unique index invites_email on invites (organization_id, email)`.execute(db);
}

async function createCredentials(db: Kysely<unknown>): Promise<void> {
  const credential = (name: 'api_keys' | 'tokens', owner: string, owners: string) =>
    db.schema
      .createTable(name)
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn(owner, 'text', (column) => column.notNull().references(`${owners}.id`))
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull().unique())
      .addColumn('suffix', 'text', (column) => column.notNull())
      .addColumn('created_by', 'text')
      .addColumn('created_at', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'text')
      .addColumn('revoked_at', 'text')
      .addColumn('last_used_at', 'text');
  await credential('api_keys', 'organization_id', 'organizations').execute();
  await credential('tokens', 'user_id', 'users').execute();
  await sql`create index api_keys_organization on api_keys (organization_id, created_at, id)`.execute(db);
  await sql`create index tokens_user on tokens (user_id, created_at, id)`.execute(db);
  await db.schema
    .createTable('registries')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('registry_host', 'text', (column) => column.notNull())
    .addColumn('username', 'text', (column) => column.notNull())
    .addColumn('password', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .execute();
  await sql`create unique index registries_host on registries (organization_id, registry_host)`.execute(db);
}

async function extendSandboxes(db: Kysely<unknown>): Promise<void> {
  const alter = () => db.schema.alterTable('sandboxes');
  await alter().addColumn('slug', 'text').execute();
  await alter()
    .addColumn('version', 'integer', (column) => column.notNull().defaultTo(1))
    .execute();
  await alter()
    .addColumn('is_ephemeral', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  for (const name of [
    'isolation',
    'status_reason',
    'failure_code',
    'unavailable_since',
    'recovery_ends_at',
    'state_since',
    'snapshot_id',
    'secrets',
    'wish',
    'claimed_by',
    'claimed_until',
    'updated_at',
  ]) {
    await alter().addColumn(name, 'text').execute();
  }
  // Existing sandboxes have no slug; their id is as unique.
  await sql`update sandboxes set slug = id, updated_at = created_at, state_since = created_at`.execute(db);
  await sql`create unique index sandboxes_slug on sandboxes (slug) where removed_at is null`.execute(db);
  await sql`create index sandboxes_page on sandboxes (organization_id, created_at, id) where removed_at is null`.execute(
    db,
  );
  // Sandboxes that count as running, for quotas.
  await sql`create index sandboxes_wanted on sandboxes (organization_id, is_ephemeral) where removed_at is null and desired in ('running', 'restarted')`.execute(
    db,
  );
  await sql`create index sandboxes_observed on sandboxes (observed) where removed_at is null`.execute(db);
  await db.schema
    .createTable('sandbox_labels')
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('organization_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_labels_pk', ['sandbox_id', 'key'])
    .execute();
  // In the order of the pages, so that a page of matches is read from the index without scanning the rest.
  await sql`create index sandbox_labels_match on sandbox_labels (organization_id, key, value, created_at, sandbox_id)`.execute(
    db,
  );
  await db.schema
    .createTable('sandbox_volumes')
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('volume_id', 'text', (column) => column.notNull())
    .addColumn('mount_path', 'text', (column) => column.notNull())
    .addColumn('is_read_only', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_volumes_pk', ['sandbox_id', 'mount_path'])
    .execute();
  await sql`create index sandbox_volumes_volume on sandbox_volumes (volume_id)`.execute(db);
}

async function extendRuns(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('runs').addColumn('organization_id', 'text').execute();
  await sql`update runs set organization_id = (select organization_id from sandboxes where sandboxes.id = runs.sandbox_id)`.execute(
    db,
  );
  // Most queries are about the latest weeks, so runs that ended before are skipped. The other columns are the inputs
  // of the usage computation, which is answered from the index alone.
  await sql`create index runs_period on runs (organization_id, ended_at, started_at, sandbox_id, vcpus, memory_mib, disk_mib)`.execute(
    db,
  );
}

async function createProcesses(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('processes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('sandbox_id', 'text', (column) => column.notNull().references('sandboxes.id'))
    .addColumn('run_id', 'text', (column) => column.notNull().references('runs.id'))
    .addColumn('name', 'text')
    .addColumn('pid', 'integer')
    .addColumn('command', 'text', (column) => column.notNull())
    .addColumn('is_tty', 'integer', (column) => column.notNull())
    .addColumn('started_at', 'text', (column) => column.notNull())
    .addColumn('ended_at', 'text')
    .addColumn('exit', 'text')
    .addColumn('stdout_bytes', 'bigint', (column) => column.notNull())
    .addColumn('stderr_bytes', 'bigint', (column) => column.notNull())
    .execute();
  await sql`create unique index processes_name on processes (sandbox_id, name) where ended_at is null and name is not null`.execute(
    db,
  );
  await sql`create index processes_page on processes (sandbox_id, started_at, id)`.execute(db);
  await sql`create index processes_running on processes (sandbox_id) where ended_at is null`.execute(db);
}

async function createVolumes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('volumes')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('capacity_gib', 'integer')
    .addColumn('labels', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('is_made', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .addColumn('removed_at', 'text')
    .execute();
  await sql`create unique index volumes_name on volumes (organization_id, name) where removed_at is null and name is not null`.execute(
    db,
  );
  // Every organization has one volume without a name.
  await sql`create unique index volumes_host on volumes (organization_id) where kind = 'host' and removed_at is null`.execute(
    db,
  );
  await db.schema
    .createTable('volume_usage')
    .addColumn('volume_id', 'text', (column) => column.notNull().references('volumes.id'))
    .addColumn('organization_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'text', (column) => column.notNull())
    .addColumn('ended_at', 'text', (column) => column.notNull())
    .addColumn('used_bytes', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('volume_usage_pk', ['volume_id', 'started_at'])
    .execute();
  await sql`create index volume_usage_period on volume_usage (organization_id, started_at)`.execute(db);
}

async function createSnapshots(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('snapshots')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('sandbox_name', 'text', (column) => column.notNull())
    .addColumn('digest', 'text', (column) => column.notNull())
    .addColumn('size_bytes', 'bigint', (column) => column.notNull())
    .addColumn('manifest', 'text', (column) => column.notNull())
    .addColumn('labels', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('removed_at', 'text')
    .execute();
  await sql`create unique index snapshots_name on snapshots (organization_id, name) where removed_at is null`.execute(
    db,
  );
  await db.schema
    .createTable('snapshot_operations')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('snapshot_id', 'text', (column) => column.notNull())
    .addColumn('snapshot_name', 'text', (column) => column.notNull())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('sandbox_name', 'text', (column) => column.notNull())
    .addColumn('request', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('error', 'text')
    .addColumn('claimed_by', 'text')
    .addColumn('claimed_until', 'text')
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'text', (column) => column.notNull())
    .addColumn('completed_at', 'text')
    .execute();
  await sql`create index snapshot_operations_page on snapshot_operations (organization_id, created_at, id)`.execute(
    db,
  );
}

async function createEvents(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('events')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('organization_id', 'text', (column) => column.notNull().references('organizations.id'))
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('category', 'text', (column) => column.notNull())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('payload', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text')
    .addColumn('source_address', 'text')
    .addColumn('timestamp', 'text', (column) => column.notNull())
    .addColumn('previous_hash', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .execute();
  await sql`create unique index events_sequence on events (organization_id, sequence)`.execute(db);
  await sql`create index events_type on events (organization_id, event_type, sequence)`.execute(db);
  await sql`create index events_time on events (organization_id, timestamp, sequence)`.execute(db);
}

async function createIdempotency(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('idempotency')
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('fingerprint', 'text', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('body', 'text')
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('leased_until', 'text', (column) => column.notNull())
    .addColumn('created_at', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('idempotency_pk', ['scope', 'key'])
    .execute();
  await sql`create index idempotency_age on idempotency (created_at)`.execute(db);
}

async function createMetricSamples(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('metric_samples')
    .addColumn('owner_id', 'text', (column) => column.notNull())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('sample', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('metric_samples_pk', ['owner_id', 'at_ms'])
    .execute();
  await sql`create index metric_samples_age on metric_samples (at_ms)`.execute(db);
}
