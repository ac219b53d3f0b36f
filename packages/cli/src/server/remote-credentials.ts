import { PlatformError } from '@svc/contract/errors';
import type { Client } from '@svc/sdk';
import { Organization, SvcError } from '@svc/sdk';
import type { Listed } from '../terminal/print-credentials.ts';
import { UsageError } from '../usage-error.ts';

interface NewCredential {
  readonly name: string;
  /** Such as `30d`; absent: never. */
  readonly expire?: string | undefined;
}

interface Issued {
  readonly id: string;
  readonly secret: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

export async function createRemoteApiKey(
  client: Client,
  { name, expire }: NewCredential,
): Promise<Issued & { readonly organization: string }> {
  const body = { name, ...(await expiry(expire)) };
  return await asUser('API keys are made by users', async () => {
    const organization = await chooseOrganization(client);
    const made = await client.call('apiKeys.create', { body }, { organization });
    return { organization, ...issued(made, made.key, 'svc apikey revoke') };
  });
}

export async function listRemoteApiKeys(client: Client): Promise<readonly Listed[]> {
  return await asUser('API keys are listed for users', async () => {
    const organization = await chooseOrganization(client);
    const found: Listed[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = { limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const page = await client.call('apiKeys.list', { query }, { organization });
      found.push(...page.data.map(toListed));
      cursor = page.next_cursor;
    }
    return found;
  });
}

export async function revokeRemoteApiKey(client: Client, id: string): Promise<void> {
  await asUser('API keys are revoked by users', async () => {
    const organization = await chooseOrganization(client);
    await client.call('apiKeys.revoke', { params: { id } }, { organization });
  });
}

export async function createRemoteToken(client: Client, { name, expire }: NewCredential): Promise<Issued> {
  const body = { name, ...(await expiry(expire)) };
  return await asUser('Tokens are made by users for themselves', async () => {
    const made = await client.call('tokens.create', { body });
    return issued(made, made.token, 'svc token revoke');
  });
}

export async function listRemoteTokens(client: Client): Promise<readonly Listed[]> {
  return await asUser('Tokens are listed for their users', async () =>
    (await client.call('tokens.list', {})).map(toListed),
  );
}

export async function revokeRemoteToken(client: Client, id: string): Promise<void> {
  await asUser('Tokens are revoked by their users', () => client.call('tokens.revoke', { params: { id } }));
}

/** Calls for the chosen organization, with the token of a user. */
export async function inOrganization<T>(
  client: Client,
  rule: string,
  work: (options: { readonly client: Client; readonly organization: string }) => Promise<T>,
): Promise<T> {
  return await asUser(rule, async () => work({ client, organization: await chooseOrganization(client) }));
}

/** Over REST a user has only their own tokens. @throws UsageError when a user is named */
export function refuseOtherUser(user: string | undefined, url: string): void {
  if (user === undefined) return;
  throw new UsageError(
    `tokens of ${url} are those of the user whose token you have, so --user cannot be given\n  try: the same command on the machine of that server, with sudo`,
  );
}

/** The one that was chosen with the server, or the only one that the user belongs to. @throws UsageError */
async function chooseOrganization(client: Client): Promise<string> {
  if (client.organization !== null) return client.organization;
  const slugs = (await Organization.list({ client })).map(({ slug }) => slug);
  const [only] = slugs;
  if (only !== undefined && slugs.length === 1) return only;
  const which = slugs.length === 0 ? 'you belong to none' : `you belong to ${slugs.join(', ')}`;
  throw new UsageError(`say for which organization: ${which}\n  try: --org NAME`);
}

async function expiry(duration: string | undefined): Promise<{ readonly expires_at?: string }> {
  if (duration === undefined) return {};
  const { expiryAfter } = await import('@svc/server/admin');
  const expiresAt = expiryAfter(duration);
  return expiresAt === null ? {} : { expires_at: expiresAt };
}

interface Shown {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** A call that was repeated after its answer was lost finds no secret any more. */
function issued(made: Shown, secret: string | null, undo: string): Issued {
  const { id, created_at: createdAt, expires_at: expiresAt } = made;
  if (secret !== null) return { id, secret, createdAt, expiresAt };
  const message = `it was made, but its secret was lost on the way; do \`${undo} ${id}\` and then the same again`;
  throw new SvcError('connection_failed', message);
}

function toListed(
  shown: Shown & { readonly name: string; readonly prefix: string; readonly last_used_at: string | null },
): Listed {
  const { id, name, prefix: suffix, created_at: createdAt, expires_at: expiresAt } = shown;
  return { id, name, suffix, createdAt, expiresAt, lastUsedAt: shown.last_used_at };
}

/** Explains the refusal of an API key, which is no user: a personal access token is needed. */
export async function asUser<T>(rule: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!SvcError.is(error, 'invalid_api_key')) throw error;
    const message = `${rule}: this takes a personal access token, not an API key\n  try: svc token create --user YOU@EXAMPLE.COM, where the server runs`;
    throw new PlatformError('forbidden', message, { cause: error });
  }
}
