import { PlatformError } from '@svc/contract';
import { previewUrl, type PreviewAddresses } from './preview-place.ts';
import {
  createPreviewToken,
  listPreviewTokens,
  revokePreviewToken,
  type PreviewToken,
} from '../../store/preview-tokens.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';

const MAX_PREVIEWS_OF_SANDBOX = 1000;
/** Of a name between two dots. */
const MAX_LABEL_LENGTH = 63;

type PreviewUrl = (port: number) => string;

export function previewHandlers(
  database: Database,
  addresses: PreviewAddresses | null,
): Pick<RestHandlers, Extract<keyof RestHandlers, `previews.${string}`>> {
  return {
    'previews.list': async ({ params }, call) => {
      const { id, slug } = await requireSandbox(database, call, { id: params.sandbox_id });
      const urlOf = (port: number) => (addresses === null ? '' : previewUrl(addresses, { port, slug }));
      return (await listPreviewTokens(database, id)).map((token) => viewPreview(token, urlOf));
    },
    'previews.create': async ({ params, body }, call) =>
      await create(database, addresses, call, { sandboxId: params.sandbox_id, ...body }),
    'previews.revoke': async ({ params }, call) => {
      const answer = () => ({ message: 'The preview token is revoked' });
      await call.commit(async ({ db, record }) => {
        const { id, name } = await requireSandbox(db, call, { id: params.sandbox_id });
        const revoked = await revokePreviewToken(db, id, params.preview_id.toLowerCase());
        if (revoked === undefined) throw new PlatformError('not_found', 'There is no such preview token');
        const payload = { preview_id: revoked.id, sandbox_id: id, sandbox_name: name, port: revoked.port };
        await record({ type: 'preview_revoked', category: 'preview', payload });
      }, answer);
      return answer();
    },
  };
}

async function create(
  database: Database,
  addresses: PreviewAddresses | null,
  call: RestCall,
  {
    sandboxId,
    port,
    expires_in_secs: seconds,
  }: { readonly sandboxId: string; readonly port: number; readonly expires_in_secs?: number | null },
) {
  await requireSandbox(database, call, { id: sandboxId });
  if (addresses === null) {
    const message = 'This server has no domain for previews; its operator gives it one with --preview-domain';
    throw new PlatformError('unavailable', message);
  }
  const expiresAt =
    seconds === undefined || seconds === null ? null : new Date(Date.now() + seconds * 1000).toISOString();
  const made = await call.commit(
    async ({ db, record }) => {
      const { id, name, slug, organizationId } = await requireSandbox(db, call, { id: sandboxId });
      requireLabel(port, slug);
      await requireRoom(db, id);
      const { preview, secret } = await createPreviewToken(db, {
        sandbox: { id, organizationId },
        port,
        expiresAt,
      });
      const payload = {
        preview_id: preview.id,
        sandbox_id: id,
        sandbox_name: name,
        port,
        expires_at: expiresAt,
      };
      await record({ type: 'preview_created', category: 'preview', payload });
      return { ...viewPreview(preview, () => previewUrl(addresses, { port, slug })), token: secret };
    },
    (view) => view,
  );
  return made;
}

function requireLabel(port: number, slug: string): void {
  const label = `${port}-${slug}`;
  if (label.length <= MAX_LABEL_LENGTH) return;
  const message = `The slug '${slug}' is too long for a preview: '${label}' has ${label.length} characters, names have ${MAX_LABEL_LENGTH}; give the sandbox a shorter one`;
  throw new PlatformError('invalid_request', message, { isConflict: true, details: { field: 'slug' } });
}

async function requireRoom(db: Database, sandboxId: string): Promise<void> {
  const tokens = await listPreviewTokens(db, sandboxId);
  if (tokens.length < MAX_PREVIEWS_OF_SANDBOX) return;
  const message = `The sandbox has ${tokens.length} preview tokens, which is the most; revoke one first`;
  throw new PlatformError('quota_exceeded', message, { details: { maximum: MAX_PREVIEWS_OF_SANDBOX } });
}

function viewPreview(token: PreviewToken, urlOf: PreviewUrl) {
  return {
    id: token.id,
    port: token.port,
    url: urlOf(token.port),
    prefix: token.suffix,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
  };
}
