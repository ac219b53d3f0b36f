import { DEFAULT_NAMESPACE, PlatformError } from '@svc/contract';
import type { Change } from '../../dispatch/rest-call.ts';
import type { Database } from '../../store/database.ts';
import {
  createPreviewToken,
  findLocalPreview,
  findPublicPreview,
  listPreviewTokens,
  type PreviewToken,
} from '../../store/preview-tokens.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { isLabel, MAX_LABEL_LENGTH, previewUrl, TOKEN_NAME, type PreviewAddresses } from './preview-place.ts';

const MAX_PREVIEWS_OF_SANDBOX = 1000;
const DEFAULT_ADDRESS_SECONDS = 24 * 60 * 60;

export interface NewPreview {
  readonly port: number;
  /** Null: until it is revoked. */
  readonly seconds: number | null;
  /** The address works without a token. */
  readonly isPublic: boolean;
}

/** The parts of a call's change that making an address needs: a transaction, and its audit events. */
type PreviewChange = Pick<Change, 'db' | 'record'>;

/**
 * The address of a port, which opens as it is, in a browser or a program. Where a token is needed one is made, valid for a day unless
 * `seconds` says otherwise, and is part of the address; the caller sees it once.
 */
export async function addressOfPort(
  change: PreviewChange,
  place: PreviewAddresses,
  wanted: { readonly sandbox: SandboxRecord; readonly port: number; readonly seconds?: number | null },
) {
  const { sandbox, port, seconds = null } = wanted;
  const { slug } = sandbox;
  requireLabel(port, slug);
  const url = previewUrl(place, { port, slug });
  const known = { port, preview_id: null, expires_at: null };
  if (place.isOpen) {
    const label = await localLabel(change.db, sandbox, port);
    return { ...known, url: previewUrl(place, { port, slug: label }), access: 'open' as const };
  }
  if ((await findPublicPreview(change.db, { port, slug })) !== undefined)
    return { ...known, url, access: 'public' as const };
  const { preview, secret } = await makePreview(change, sandbox, {
    port,
    seconds: seconds ?? DEFAULT_ADDRESS_SECONDS,
    isPublic: false,
  });
  return {
    port,
    url: `${url}?${TOKEN_NAME}=${secret}`,
    access: 'token' as const,
    preview_id: preview.id,
    expires_at: preview.expiresAt,
  };
}

/** @throws PlatformError `unavailable` */
export function requirePlace(addresses: PreviewAddresses | null): PreviewAddresses {
  if (addresses !== null) return addresses;
  const message = 'This server has no domain for previews; its operator gives it one with --preview-domain';
  throw new PlatformError('unavailable', message);
}

/** Makes a preview that is valid until then. The secret is null when none is needed. */
export async function makePreview(
  { db, record }: PreviewChange,
  sandbox: SandboxRecord,
  { port, seconds, isPublic }: NewPreview,
): Promise<{ readonly preview: PreviewToken; readonly secret: string | null }> {
  const { id, name, slug } = sandbox;
  requireLabel(port, slug);
  await requireFreePreview(db, id);
  const expiresAt = seconds === null ? null : new Date(Date.now() + seconds * 1000).toISOString();
  const { preview, secret } = await createPreviewToken(db, { sandbox, port, expiresAt, isPublic });
  const payload = {
    preview_id: preview.id,
    sandbox_id: id,
    sandbox_name: name,
    port,
    access: isPublic ? 'public' : 'token',
    expires_at: expiresAt,
  };
  await record({ type: 'preview_created', category: 'preview', payload });
  return { preview, secret: isPublic ? null : secret };
}

export function viewPreview(token: PreviewToken, urlOf: (port: number) => string) {
  return {
    id: token.id,
    port: token.port,
    url: urlOf(token.port),
    access: token.isPublic ? ('public' as const) : ('token' as const),
    prefix: token.suffix,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
  };
}

/** The sandbox's name, where that works in an address; else its slug. */
async function localLabel(
  db: Database,
  { id, name, slug, namespace }: SandboxRecord,
  port: number,
): Promise<string> {
  if (namespace !== DEFAULT_NAMESPACE || !isLabel(port, name)) return slug;
  const found = await findLocalPreview(db, name, DEFAULT_NAMESPACE);
  return found?.id === id ? name : slug;
}

function requireLabel(port: number, slug: string): void {
  if (isLabel(port, slug)) return;
  const label = `${port}-${slug}`;
  const message = `The slug '${slug}' is too long for a preview: '${label}' has ${label.length} characters, names have ${MAX_LABEL_LENGTH}; give the sandbox a shorter one`;
  throw new PlatformError('invalid_request', message, { isConflict: true, details: { field: 'slug' } });
}

async function requireFreePreview(db: Database, sandboxId: string): Promise<void> {
  const previews = await listPreviewTokens(db, sandboxId);
  if (previews.length < MAX_PREVIEWS_OF_SANDBOX) return;
  const message = `The sandbox has ${previews.length} previews, which is the most; revoke one first`;
  throw new PlatformError('quota_exceeded', message, { details: { maximum: MAX_PREVIEWS_OF_SANDBOX } });
}
