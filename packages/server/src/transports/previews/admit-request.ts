import { isIPv4 } from 'node:net';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { DEFAULT_NAMESPACE } from '@svc/contract';
import type { PreviewAddresses, PreviewHost } from '../../handlers/previews/preview-place.ts';
import type { Database } from '../../store/database.ts';
import {
  findLocalPreview,
  findPreview,
  findPublicPreview,
  PREVIEW_TOKEN_PREFIX,
} from '../../store/preview-tokens.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { isForeignPage } from '../http/foreign-page.ts';
import { isLoopback } from '../http/loopback.ts';
import { ELSEWHERE, FOREIGN_PAGE, NEEDS_TOKEN, noSuchSandbox, type PreviewAnswer } from './preview-answer.ts';
import { readTokens } from './preview-token.ts';

const MAX_TRIED_COOKIES = 8;

export type Admission = {
  readonly sandbox: SandboxRecord;
} & (
  | {
      readonly by: 'token';
      readonly token: string;
      /** It came in the address, where it should not stay. */
      readonly isFromAddress: boolean;
    }
  /** The port is public. */
  | { readonly by: 'public' }
  /** A development server admits requests from its own machine without a token. */
  | { readonly by: 'place' }
  /** The sandbox was named by its id, and its own settings admit the request. */
  | { readonly by: 'id' }
);

/**
 * Admits a request to a host whose label is no slug, but names a sandbox in another way. A record without an admission: its ports
 * are admitted like those of other sandboxes.
 */
export type AdmitById = (
  host: PreviewHost,
  headers: IncomingHttpHeaders,
) => Promise<Admission | PreviewAnswer | { readonly slug: string } | undefined>;

/**
 * Admits a request to a port: with a token for this port of this sandbox, without one while the port is public, and on a
 * development server from its own machine. Refusals do not reveal whether port or sandbox exist.
 */
export async function admitRequest(
  { database, place }: { readonly database: Database; readonly place: PreviewAddresses },
  host: PreviewHost,
  request: IncomingMessage,
): Promise<Admission | PreviewAnswer> {
  const { header, query, cookies } = readTokens(request.url ?? '/', request.headers);
  for (const [token, isFromAddress] of [
    [header, false],
    [query, true],
  ] as const) {
    const sandbox = await open(database, token, host);
    if (token !== undefined && sandbox !== undefined) return { sandbox, by: 'token', token, isFromAddress };
  }
  const shown = await findPublicPreview(database, host);
  if (shown !== undefined) return { sandbox: shown, by: 'public' };
  if (place.isOpen && isFromHere(request)) return await admitLocally(database, host, request);
  for (const token of cookies.slice(0, MAX_TRIED_COOKIES)) {
    const sandbox = await open(database, token, host);
    if (sandbox === undefined) continue;
    return isOwnPage(request) ? { sandbox, by: 'token', token, isFromAddress: false } : FOREIGN_PAGE;
  }
  return NEEDS_TOKEN;
}

/** Whether an admission is still valid. */
export async function isStillOpen(
  database: Database,
  host: PreviewHost,
  admission: Exclude<Admission, { readonly by: 'id' }>,
): Promise<boolean> {
  if (admission.by === 'place') return true;
  const sandbox =
    admission.by === 'token'
      ? await open(database, admission.token, host)
      : await findPublicPreview(database, host);
  return sandbox !== undefined;
}

async function open(
  database: Database,
  token: string | undefined,
  host: PreviewHost,
): Promise<SandboxRecord | undefined> {
  if (token === undefined || !token.startsWith(PREVIEW_TOKEN_PREFIX)) return undefined;
  return (await findPreview(database, token, host))?.sandbox;
}

/**
 * Names below `localhost` always resolve to this machine, so no site can give one to its own host. But a page of another
 * site can send requests to this name with a browser on this machine.
 */
async function admitLocally(
  database: Database,
  { slug }: PreviewHost,
  request: IncomingMessage,
): Promise<Admission | PreviewAnswer> {
  if (!isOwnPage(request)) return ELSEWHERE;
  const sandbox = await findLocalPreview(database, slug, DEFAULT_NAMESPACE);
  return sandbox === undefined ? noSuchSandbox(slug) : { sandbox, by: 'place' };
}

function isFromHere({ socket }: IncomingMessage): boolean {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  return address === '::1' || (isIPv4(address) && isLoopback(address));
}

/**
 * Browsers send a cookie with requests of any page of the same site, and all previews are one site. So a cookie admits only
 * requests of the same preview's pages, and navigation by a link.
 */
function isOwnPage({ headers }: IncomingMessage): boolean {
  const { host = '', origin } = headers;
  if (origin !== undefined) return origin === `http://${host}` || origin === `https://${host}`;
  return !isForeignPage(headers);
}
