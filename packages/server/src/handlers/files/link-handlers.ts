import { posix } from 'node:path';
import { PlatformError } from '@svc/contract';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { FilePlace } from '../../files/guest-files.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import { appendEvent } from '../../store/events.ts';
import { inTransaction, untilCommitted } from '../../store/in-transaction.ts';
import { getSandbox } from '../../store/sandboxes.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';
import { requireSigned, signLink, type FileLink } from './file-link.ts';
import { modeOf, ownerOf, pathIn, requireRun, toView } from './file-place.ts';
import type { FileTransfers } from './file-transfers.ts';
import { authorityOfMaker, makerOf } from './link-maker.ts';

type LinkHandlers = Pick<RestHandlers, `files.${'createLink' | 'readByLink' | 'writeByLink'}`>;

const DEFAULT_SECONDS = 3600;
const MS_PER_SECOND = 1000;

export interface LinkParts {
  readonly database: Database;
  readonly sealer: Sealer;
}

/** Links are signed, not stored: each names the credential of its maker, which is looked up again at every use. */
export function linkHandlers(parts: LinkParts, transfers: FileTransfers): LinkHandlers {
  const { database, sealer } = parts;
  return {
    'files.createLink': async ({ params, body }, call) => {
      const { method, owner, mode, parents, expires_in_secs: seconds = DEFAULT_SECONDS } = body;
      for (const [field, value] of Object.entries({ owner, mode, parents })) {
        if (method === 'GET' && value !== undefined)
          throw badField(field, 'is for links to write with (PUT)');
      }
      const sandbox = await requireSandbox(database, call, { id: params.sandbox_id });
      const path = pathIn(sandbox, body.path);
      const expires = Math.ceil(Date.now() / MS_PER_SECOND) + seconds;
      const link = { method, sandboxId: sandbox.id, path, expires, by: makerOf(call), owner, mode, parents };
      const expiresAt = new Date(expires * MS_PER_SECOND).toISOString();
      const answer = { address: signLink(sealer, link), method, path, expires_at: expiresAt };
      const payload = { sandbox_id: sandbox.id, path, method, expires_at: expiresAt };
      await call.commit(
        ({ record }) => record({ type: 'file_link_created', category: 'file', payload }),
        () => answer,
      );
      return answer;
    },
    'files.readByLink': async ({ query, headers }, call) => {
      const { place, owner } = await follow(parts, 'GET', query);
      const content = await transfers.read(owner, place, headers, call);
      // SAFETY: the file is the guest's, and the address is the server's: no browser may show it as a page of the server.
      call.setHeader('content-disposition', `attachment; filename*=UTF-8''${encodeName(place.path)}`);
      call.setHeader('cache-control', 'no-store');
      return content;
    },
    'files.writeByLink': async ({ query, body }, call) => {
      const { place, owner, note } = await follow(parts, 'PUT', query);
      const options = { body, owner: query.owner, mode: modeOf(query.mode), parents: query.parents };
      const info = await transfers.write(owner, place, options, call);
      await note(call, { bytes: info.size });
      return toView(info);
    },
  };
}

interface LinkQuery extends Omit<FileLink, 'method' | 'sandboxId'> {
  readonly sandbox_id: string;
  readonly signature: string;
}

/** Checks the link, its maker and its sandbox, in this order. */
async function follow({ database, sealer }: LinkParts, method: FileLink['method'], query: LinkQuery) {
  const { sandbox_id: sandboxId, signature, ...link } = query;
  requireSigned(sealer, { ...link, method, sandboxId }, signature);
  const known = await getSandbox(database, sandboxId.toLowerCase());
  if (known === undefined)
    throw new PlatformError('sandbox_not_found', 'The sandbox of this link was removed');
  const authority = await authorityOfMaker(database, link.by, known);
  // Not one that was removed meanwhile.
  const sandbox = await requireSandbox(database, authority, { id: known.id });
  await requireRun(database, sandbox);
  const place: FilePlace = { sandboxId: sandbox.id, path: link.path };
  const { actor, organization } = authority;
  const note = async ({ requestId, sourceAddress }: RestCall, more: Readonly<Record<string, unknown>>) => {
    const payload = { sandbox_id: sandbox.id, path: link.path, ...more, by_link: true };
    const event = { type: 'file_written', category: 'file', payload } as const;
    const origin = { actor, requestId, sourceAddress, organizationId: organization.id };
    await untilCommitted<void>((whenCommitted) =>
      inTransaction(
        database,
        (transaction) => appendEvent(transaction, { ...event, ...origin }),
        whenCommitted,
      ),
    );
  };
  return { place, owner: ownerOf(authority), note };
}

/** As RFC 8187 spells it. */
function encodeName(path: string): string {
  const isKept = /[A-Za-z0-9._~-]/;
  const encoded = encodeURIComponent(posix.basename(path).toWellFormed());
  return encoded.replaceAll(/[!'()*]/g, (mark) =>
    isKept.test(mark) ? mark : `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
