import { PlatformError } from '@svc/contract';
import { badField } from '../../dispatch/rest-dispatch.ts';
import {
  countCredentials,
  createApiKey,
  createToken,
  listApiKeys,
  listTokens,
  revokeApiKey,
  revokeToken,
  type CredentialRecord,
  type IssuedCredential,
} from '../../store/api-keys-and-tokens.ts';
import { lockUser } from '../../store/users.ts';
import { MAX_API_KEYS, MAX_TOKENS, requireFewer } from '../../accounting/caps.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import { recordEverywhere } from '../../dispatch/record-everywhere.ts';
import { readTime } from '../../dispatch/read-time.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';

interface NewCredential {
  readonly name: string;
  readonly expires_at?: string | null;
}

export function credentialHandlers(
  database: Database,
): Pick<RestHandlers, Extract<keyof RestHandlers, `apiKeys.${string}` | `tokens.${string}`>> {
  return {
    'apiKeys.list': async ({ query }, call) => {
      const page = readPage(query, 'api-keys', 2);
      const rows = await listApiKeys(database, call.organization.id, page, ownOnly(call));
      return toPage(rows, page, 'api-keys', ({ createdAt, id }) => [createdAt, id], viewApiKey);
    },
    'apiKeys.create': async ({ body }, call) => await createKey(body, call),
    'apiKeys.revoke': async ({ params }, call) => {
      const answer = () => ({ message: 'The API key is revoked' });
      await call.commit(async ({ db, record }) => {
        const id = params.id.toLowerCase();
        const revoked = await revokeApiKey(db, call.organization.id, id, ownOnly(call));
        if (revoked === undefined) throw new PlatformError('not_found', 'There is no such API key');
        const payload = { api_key_id: id, name: revoked.name };
        await record({ type: 'api_key_revoked', category: 'api_key', payload });
      }, answer);
      return answer();
    },
    'tokens.list': async (_input, call) =>
      (await listTokens(database, requireUser(call).id)).map(viewCredential),
    'tokens.create': async ({ body }, call) => await createUserToken(body, call),
    'tokens.revoke': async ({ params }, call) => {
      const answer = () => ({ message: 'The personal access token is revoked' });
      await call.commit(async (change) => {
        const id = params.id.toLowerCase();
        const revoked = await revokeToken(change.db, requireUser(call).id, id);
        if (revoked === undefined) throw new PlatformError('not_found', 'There is no such token');
        const payload = { token_id: id, name: revoked.name };
        await recordEverywhere(change, requireUser(call).id, {
          type: 'token_revoked',
          category: 'token',
          payload,
        });
      }, answer);
      return answer();
    },
  };
}

/** Members may see and revoke only the keys that they made. */
function ownOnly(call: RestCall): string | null {
  return call.role === 'member' ? requireUser(call).id : null;
}

async function createKey(body: NewCredential, call: RestCall) {
  const createdBy = requireUser(call).id;
  const expiresAt = readExpiry(body.expires_at);
  const view = (issued: IssuedCredential) => ({
    ...viewApiKey({ ...issued, name: body.name, createdBy, expiresAt, lastUsedAt: null }),
    key: issued.secret,
  });
  const made = await call.commit(async ({ db, record }) => {
    const count = await countCredentials(db, 'api_keys', call.organization.id);
    requireFewer('max_api_keys', count, MAX_API_KEYS);
    const issued = await createApiKey(db, call.organization.id, { name: body.name, createdBy, expiresAt });
    const payload = { api_key_id: issued.id, name: body.name, expires_at: expiresAt };
    await record({ type: 'api_key_created', category: 'api_key', payload });
    return issued;
  }, view);
  return view(made);
}

async function createUserToken(body: NewCredential, call: RestCall) {
  const { id: userId } = requireUser(call);
  const expiresAt = readExpiry(body.expires_at);
  const view = (issued: IssuedCredential) => ({
    ...viewCredential({ ...issued, name: body.name, createdBy: userId, expiresAt, lastUsedAt: null }),
    token: issued.secret,
  });
  const made = await call.commit(async (change) => {
    await lockUser(change.db, userId);
    requireFewer('max_tokens', await countCredentials(change.db, 'tokens', userId), MAX_TOKENS);
    const issued = await createToken(change.db, userId, { name: body.name, createdBy: userId, expiresAt });
    const payload = { token_id: issued.id, name: body.name, expires_at: expiresAt };
    await recordEverywhere(change, requireUser(call).id, {
      type: 'token_created',
      category: 'token',
      payload,
    });
    return issued;
  }, view);
  return view(made);
}

function readExpiry(text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  const time = readTime('expires_at', text);
  if (time > Date.now()) return new Date(time).toISOString();
  throw badField('expires_at', 'must be in the future');
}

function viewApiKey(record: CredentialRecord) {
  return { ...viewCredential(record), created_by: record.createdBy };
}

function viewCredential(record: CredentialRecord) {
  return {
    id: record.id,
    name: record.name,
    prefix: record.suffix,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    last_used_at: record.lastUsedAt,
  };
}
