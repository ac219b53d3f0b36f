import { PlatformError } from '@svc/contract';
import { listPreviewTokens, revokePreviewToken } from '../../store/preview-tokens.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';
import { addressOfPort, makePreview, requirePlace, viewPreview, type NewPreview } from './port-address.ts';
import { previewUrl, type PreviewAddresses } from './preview-place.ts';

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
    'previews.create': async ({ params, body }, call) => {
      const { port, expires_in_secs: seconds = null, public: isPublic = false } = body;
      if (isPublic === true && seconds === null) {
        const message = 'What is public needs an end: give expires_in_secs';
        throw new PlatformError('invalid_request', message, { details: { field: 'expires_in_secs' } });
      }
      const wanted = { port, seconds, isPublic: isPublic === true };
      return await create(database, addresses, call, { sandboxId: params.sandbox_id, wanted });
    },
    'previews.open': async ({ params, body }, call) => {
      await requireSandbox(database, call, { id: params.sandbox_id });
      const place = requirePlace(addresses);
      const { port, expires_in_secs: seconds = null } = body;
      return await call.commit(
        async (change) => {
          const sandbox = await requireSandbox(change.db, call, { id: params.sandbox_id });
          return await addressOfPort(change, place, { sandbox, port, seconds });
        },
        (address) => address,
      );
    },
    'previews.revoke': async ({ params }, call) => {
      const answer = () => ({ message: 'The preview is revoked' });
      await call.commit(async ({ db, record }) => {
        const { id, name } = await requireSandbox(db, call, { id: params.sandbox_id });
        const revoked = await revokePreviewToken(db, id, params.preview_id.toLowerCase());
        if (revoked === undefined) throw new PlatformError('not_found', 'There is no such preview');
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
  { sandboxId, wanted }: { readonly sandboxId: string; readonly wanted: NewPreview },
) {
  await requireSandbox(database, call, { id: sandboxId });
  const place = requirePlace(addresses);
  return await call.commit(
    async (change) => {
      const sandbox = await requireSandbox(change.db, call, { id: sandboxId });
      const { preview, secret } = await makePreview(change, sandbox, wanted);
      const view = viewPreview(preview, (port) => previewUrl(place, { port, slug: sandbox.slug }));
      return { ...view, token: secret };
    },
    (view) => view,
  );
}
