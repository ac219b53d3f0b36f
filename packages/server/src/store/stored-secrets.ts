import type { Database } from './database.ts';
import { contextEnvContext } from './code-contexts.ts';
import { secondFactorContext } from './second-factors.ts';
import { registryContext } from './registries.ts';
import { secretContext } from './secrets.ts';

/** A value in the database that a `Sealer` sealed. */
export interface StoredSecret {
  readonly sealed: string;
  readonly context: string;
  /** Puts another one in its place, unless it was changed meanwhile. */
  replace(sealed: string): Promise<void>;
}

/** What the secret values and registry passwords of a sandbox are sealed for. */
export function sandboxSecretsContext(sandboxId: string): string {
  return `sandbox:${sandboxId}`;
}

/** Every sealed value of the database. A column that holds some and is not read here would not survive a rotation. */
export async function listStoredSecrets(db: Database): Promise<readonly StoredSecret[]> {
  const registries = await db.selectFrom('registries').select(['id', 'password']).execute();
  const secrets = await db.selectFrom('secrets').select(['id', 'value']).execute();
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select(['id', 'secrets'])
    .where('secrets', 'is not', null)
    .execute();
  const contexts = await db
    .selectFrom('code_contexts')
    .select(['id', 'env'])
    .where('env', 'is not', null)
    .execute();
  const factors = await db.selectFrom('second_factors').select(['user_id', 'secret']).execute();
  return [
    ...factors.map(({ user_id: id, secret }) => ({
      sealed: secret,
      context: secondFactorContext(id),
      replace: async (sealed: string) => {
        const query = db.updateTable('second_factors').set({ secret: sealed }).where('user_id', '=', id);
        await query.where('secret', '=', secret).execute();
      },
    })),
    ...contexts.map(({ id, env }) => ({
      sealed: env ?? '',
      context: contextEnvContext(id),
      replace: async (sealed: string) => {
        const query = db.updateTable('code_contexts').set({ env: sealed }).where('id', '=', id);
        await query.where('env', '=', env).execute();
      },
    })),
    ...registries.map(({ id, password }) => ({
      sealed: password,
      context: registryContext(id),
      replace: async (sealed: string) => {
        const query = db.updateTable('registries').set({ password: sealed }).where('id', '=', id);
        await query.where('password', '=', password).execute();
      },
    })),
    ...secrets.map(({ id, value }) => ({
      sealed: value,
      context: secretContext(id),
      replace: async (sealed: string) => {
        const query = db.updateTable('secrets').set({ value: sealed }).where('id', '=', id);
        await query.where('value', '=', value).execute();
      },
    })),
    ...sandboxes.map(({ id, secrets: own }) => ({
      sealed: own ?? '',
      context: sandboxSecretsContext(id),
      replace: async (sealed: string) => {
        const query = db.updateTable('sandboxes').set({ secrets: sealed }).where('id', '=', id);
        await query.where('secrets', '=', own).execute();
      },
    })),
  ];
}
