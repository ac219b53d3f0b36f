import type { Database } from './database.ts';
import { contextEnvContext } from './code-contexts.ts';
import { secondFactorContext } from './second-factors.ts';
import { registryContext } from './registries.ts';
import { clientSecretContext } from './identity-providers.ts';
import { secretContext } from './secrets.ts';
import { webhookContext } from './webhooks.ts';

/** A sealed value in the database. */
export interface StoredSecret {
  readonly sealed: string;
  readonly context: string;
  /** Replaces the value, unless it was changed meanwhile. */
  replace(sealed: string): Promise<void>;
}

/** The sealing context of a sandbox's secret values and registry passwords. */
export function sandboxSecretsContext(sandboxId: string): string {
  return `sandbox:${sandboxId}`;
}

/**
 * Every sealed value of the database. A sealed column that is not read here would become unreadable after a rotation
 * of the key.
 */
export async function listStoredSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const columns = [
    clientSecrets,
    secondFactors,
    contextEnvironments,
    registryPasswords,
    secrets,
    sandboxSecrets,
    webhookSecrets,
    formerWebhookSecrets,
  ];
  return (await Promise.all(columns.map((list) => list(db)))).flat();
}

async function clientSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db
    .selectFrom('identity_providers')
    .select(['organization_id as id', 'client_secret as own'])
    .where('client_secret', 'is not', null)
    .execute();
  return rows.map(({ id, own }) => ({
    sealed: own ?? '',
    context: clientSecretContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('identity_providers').set({ client_secret: sealed });
      await query.where('organization_id', '=', id).where('client_secret', '=', own).execute();
    },
  }));
}

async function secondFactors(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db.selectFrom('second_factors').select(['user_id as id', 'secret']).execute();
  return rows.map(({ id, secret }) => ({
    sealed: secret,
    context: secondFactorContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('second_factors').set({ secret: sealed }).where('user_id', '=', id);
      await query.where('secret', '=', secret).execute();
    },
  }));
}

async function contextEnvironments(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db
    .selectFrom('code_contexts')
    .select(['id', 'env'])
    .where('env', 'is not', null)
    .execute();
  return rows.map(({ id, env }) => ({
    sealed: env ?? '',
    context: contextEnvContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('code_contexts').set({ env: sealed }).where('id', '=', id);
      await query.where('env', '=', env).execute();
    },
  }));
}

async function registryPasswords(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db.selectFrom('registries').select(['id', 'password']).execute();
  return rows.map(({ id, password }) => ({
    sealed: password,
    context: registryContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('registries').set({ password: sealed }).where('id', '=', id);
      await query.where('password', '=', password).execute();
    },
  }));
}

async function secrets(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db.selectFrom('secrets').select(['id', 'value']).execute();
  return rows.map(({ id, value }) => ({
    sealed: value,
    context: secretContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('secrets').set({ value: sealed }).where('id', '=', id);
      await query.where('value', '=', value).execute();
    },
  }));
}

async function sandboxSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db
    .selectFrom('sandboxes')
    .select(['id', 'secrets as own'])
    .where('secrets', 'is not', null)
    .execute();
  return rows.map(({ id, own }) => ({
    sealed: own ?? '',
    context: sandboxSecretsContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('sandboxes').set({ secrets: sealed }).where('id', '=', id);
      await query.where('secrets', '=', own).execute();
    },
  }));
}

async function webhookSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db.selectFrom('webhooks').select(['id', 'secret']).execute();
  return rows.map(({ id, secret }) => ({
    sealed: secret,
    context: webhookContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('webhooks').set({ secret: sealed }).where('id', '=', id);
      await query.where('secret', '=', secret).execute();
    },
  }));
}

async function formerWebhookSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const rows = await db
    .selectFrom('webhooks')
    .select(['id', 'previous_secret as own'])
    .where('previous_secret', 'is not', null)
    .execute();
  return rows.map(({ id, own }) => ({
    sealed: own ?? '',
    context: webhookContext(id),
    replace: async (sealed) => {
      const query = db.updateTable('webhooks').set({ previous_secret: sealed }).where('id', '=', id);
      await query.where('previous_secret', '=', own).execute();
    },
  }));
}
