import type { IncomingMessage } from 'node:http';
import type { Database } from '../../store/database.ts';
import { findPreview, PREVIEW_TOKEN_PREFIX } from '../../store/preview-tokens.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { FOREIGN_PAGE, NEEDS_TOKEN, type PreviewAnswer } from './preview-answer.ts';
import type { PreviewHost } from '../../handlers/previews/preview-place.ts';
import { readTokens } from './preview-token.ts';

const MAX_TRIED_COOKIES = 8;

export interface Admission {
  readonly sandbox: SandboxRecord;
  readonly token: string;
  /** It came in the address, where it should not stay. */
  readonly isFromAddress: boolean;
}

/** Who may use a port: whoever has a token for this port of this sandbox. Whether either exists is told to nobody else. */
export async function admitRequest(
  database: Database,
  host: PreviewHost,
  request: IncomingMessage,
): Promise<Admission | PreviewAnswer> {
  const { header, query, cookies } = readTokens(request.url ?? '/', request.headers);
  for (const [token, isFromAddress] of [
    [header, false],
    [query, true],
  ] as const) {
    const sandbox = await open(database, token, host);
    if (token !== undefined && sandbox !== undefined) return { sandbox, token, isFromAddress };
  }
  for (const token of cookies.slice(0, MAX_TRIED_COOKIES)) {
    const sandbox = await open(database, token, host);
    if (sandbox === undefined) continue;
    return isOwnPage(request) ? { sandbox, token, isFromAddress: false } : FOREIGN_PAGE;
  }
  return NEEDS_TOKEN;
}

/** Whether a token still opens the port. */
export async function isStillOpen(database: Database, host: PreviewHost, token: string): Promise<boolean> {
  return (await open(database, token, host)) !== undefined;
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
 * Browsers send a cookie along with what any page asks for, and previews of all sandboxes are of one site to them. So with a
 * cookie only pages of the same preview may ask, and people who follow a link.
 */
function isOwnPage({ headers }: IncomingMessage): boolean {
  const {
    host = '',
    origin,
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': target,
  } = headers;
  if (origin !== undefined) return origin === `http://${host}` || origin === `https://${host}`;
  if (site === undefined || site === 'same-origin' || site === 'none') return true;
  return mode === 'navigate' && target === 'document';
}
