import { PlatformError } from '@svc/contract';
import { LINK_PATH } from '@svc/contract/rest';
import type { Sealer } from '../../secrets/sealer.ts';

const CONTEXT = 'file link';
const REST_PREFIX = '/v1';
const MS_PER_SECOND = 1000;

/** What a link allows, and until when. */
export interface FileLink {
  readonly method: 'GET' | 'PUT';
  readonly sandboxId: string;
  /** Absolute. */
  readonly path: string;
  /** Seconds since 1970. */
  readonly expires: number;
  /** The credential that it was made with, which has to be good for as long. */
  readonly by: string;
  readonly owner?: string | undefined;
  readonly mode?: string | undefined;
  readonly parents?: boolean | undefined;
}

/** @returns the address of the link, below that of the server */
export function signLink(sealer: Sealer, link: FileLink): string {
  const { sandboxId, path, expires, by, owner, mode, parents } = link;
  const query = new URLSearchParams({ sandbox_id: sandboxId, path, expires: String(expires), by });
  if (owner !== undefined) query.set('owner', owner);
  if (mode !== undefined) query.set('mode', mode);
  if (parents === true) query.set('parents', 'true');
  query.set('signature', sealer.mark(textOf(link), CONTEXT));
  return `${REST_PREFIX}${LINK_PATH}?${query.toString()}`;
}

/** @throws PlatformError `forbidden` when it was not made here, was changed, or has ended */
export function requireSigned(sealer: Sealer, link: FileLink, signature: string): void {
  if (!sealer.isMarkOf(signature, textOf(link), CONTEXT)) {
    const message = 'The signature does not fit this link; use the link as it was made, with its method';
    throw new PlatformError('forbidden', message, { details: { field: 'signature' } });
  }
  const endMs = link.expires * MS_PER_SECOND;
  if (Date.now() < endMs) return;
  const message = `The link ended at ${new Date(endMs).toISOString()}; have another one made`;
  throw new PlatformError('forbidden', message, { details: { field: 'expires' } });
}

/** Every part in a place of its own, so that no two links have the same text. */
function textOf({ method, sandboxId, path, expires, by, owner, mode, parents }: FileLink): string {
  const write = [owner ?? null, mode ?? null, parents ?? false];
  return JSON.stringify([method, sandboxId.toLowerCase(), path, expires, by, ...write]);
}
