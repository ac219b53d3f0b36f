import { randomBytes, randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import { hashSecret } from './api-keys-and-tokens.ts';
import type { PreviewTokenRow } from './credential-rows.ts';
import type { Database } from './database.ts';
import { selectSandboxes, toRecord, type SandboxRecord } from './sandboxes.ts';

export const PREVIEW_TOKEN_PREFIX = 'svc_preview_';

const SECRET_BYTES = 32;
const SUFFIX_LENGTH = 8;

/** A stored token, without the secret. */
export interface PreviewToken {
  readonly id: string;
  readonly sandboxId: string;
  readonly port: number;
  readonly suffix: string;
  /** True: the port opens without a token. */
  readonly isPublic: boolean;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

export async function createPreviewToken(
  db: Database,
  preview: {
    readonly sandbox: Pick<SandboxRecord, 'id' | 'organizationId'>;
    readonly port: number;
    readonly expiresAt: string | null;
    readonly isPublic?: boolean;
  },
): Promise<{ readonly preview: PreviewToken; readonly secret: string }> {
  const { sandbox, port, expiresAt, isPublic = false } = preview;
  const secret = PREVIEW_TOKEN_PREFIX + randomBytes(SECRET_BYTES).toString('hex');
  const row = {
    id: randomUUID(),
    organization_id: sandbox.organizationId,
    sandbox_id: sandbox.id,
    port,
    hash: hashSecret(secret),
    suffix: isPublic ? '' : secret.slice(-SUFFIX_LENGTH),
    created_at: new Date().toISOString(),
    expires_at: expiresAt,
    revoked_at: null,
    is_public: isPublic ? 1 : 0,
  };
  await db.insertInto('preview_tokens').values(row).execute();
  return { preview: toToken(row), secret };
}

/** Tokens that are neither revoked nor expired, newest first. */
export async function listPreviewTokens(db: Database, sandboxId: string): Promise<readonly PreviewToken[]> {
  const rows = await db
    .selectFrom('preview_tokens')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('revoked_at', 'is', null)
    .where((build) =>
      build.or([build('expires_at', 'is', null), build('expires_at', '>', new Date().toISOString())]),
    )
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(toToken);
}

/**
 * Revokes the token permanently. @returns undefined when the sandbox has no token with this id, or it was revoked
 * before
 */
export async function revokePreviewToken(
  db: Database,
  sandboxId: string,
  id: string,
): Promise<PreviewToken | undefined> {
  const row = await db
    .updateTable('preview_tokens')
    .set({ revoked_at: new Date().toISOString() })
    .where('sandbox_id', '=', sandboxId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toToken(row);
}

/**
 * The sandbox whose port the token opens; undefined when the token is of another port or sandbox, or not valid any
 * more.
 */
export async function findPreview(
  db: Database,
  secret: string,
  place: { readonly slug: string; readonly port: number },
): Promise<{ readonly preview: PreviewToken; readonly sandbox: SandboxRecord } | undefined> {
  const row = await db
    .selectFrom('preview_tokens')
    .selectAll()
    .where('hash', '=', hashSecret(secret))
    .where('port', '=', place.port)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined || isPast(row.expires_at)) return undefined;
  const sandbox = await selectSandboxes(db)
    .where('sandboxes.id', '=', row.sandbox_id)
    .where('sandboxes.slug', '=', place.slug)
    .where('sandboxes.removed_at', 'is', null)
    .where('organizations.deleted_at', 'is', null)
    .executeTakeFirst();
  return sandbox === undefined ? undefined : { preview: toToken(row), sandbox: toRecord(sandbox) };
}

/** The sandbox of a port that is public now. */
export async function findPublicPreview(
  db: Database,
  place: { readonly slug: string; readonly port: number },
): Promise<SandboxRecord | undefined> {
  const sandbox = await selectSandboxes(db)
    .where('sandboxes.slug', '=', place.slug)
    .where('sandboxes.removed_at', 'is', null)
    .where('organizations.deleted_at', 'is', null)
    .where((build) =>
      build.exists(
        build
          .selectFrom('preview_tokens')
          .select('preview_tokens.id')
          .whereRef('preview_tokens.sandbox_id', '=', 'sandboxes.id')
          .where('preview_tokens.port', '=', place.port)
          .where('preview_tokens.is_public', '=', 1)
          .where('preview_tokens.revoked_at', 'is', null)
          .where('preview_tokens.expires_at', '>', new Date().toISOString()),
      ),
    )
    .executeTakeFirst();
  return sandbox === undefined ? undefined : toRecord(sandbox);
}

/** Without authentication: the sandbox with this slug, otherwise the one with this name in the organization. */
export async function findLocalPreview(
  db: Database,
  label: string,
  namespace: string,
): Promise<SandboxRecord | undefined> {
  const rows = await selectSandboxes(db)
    .where('sandboxes.removed_at', 'is', null)
    .where('organizations.deleted_at', 'is', null)
    .where((build) =>
      build.or([
        build('sandboxes.slug', '=', label),
        build.and([build('sandboxes.name', '=', label), build('organizations.slug', '=', namespace)]),
      ]),
    )
    .execute();
  const found = rows.map(toRecord);
  return found.find(({ slug }) => slug === label) ?? found[0];
}

function isPast(expiresAt: string | null): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}

function toToken(row: Selectable<PreviewTokenRow>): PreviewToken {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    port: row.port,
    suffix: row.suffix,
    isPublic: row.is_public === 1,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
