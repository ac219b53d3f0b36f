import type { FastifyRequest } from 'fastify';
import { listSandboxesIn } from '../../../store/sandboxes.ts';
import type { SandboxRecord } from '../../../store/sandboxes.ts';
import { findRunning, requireToken } from '../wire/admit-sandbox.ts';
import { SANDBOX_HEADER } from '../wire/e2b-address.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import type { SignedLink } from '../wire/sandbox-tokens.ts';

/** Bounds the work for a link that names no sandbox. */
const MAX_TRIED = 1000;
const MS_PER_SECOND = 1000;

/** The sandbox of a request for a file, which carries its token or is signed with it. */
export async function admitFileRequest(
  parts: E2bParts,
  request: FastifyRequest,
  operation: SignedLink['operation'],
): Promise<SandboxRecord> {
  const link = readLink(request, operation);
  const isNamed = request.headers[SANDBOX_HEADER] !== undefined;
  const sandbox =
    isNamed || link === null ? await findRunning(parts, request) : await findSigned(parts, link);
  if (link === null) {
    requireToken(parts, request, sandbox, ['envd']);
    return sandbox;
  }
  if (!parts.tokens.isSignedFor(sandbox.id, link)) throw refuse('invalid signature');
  if (link.expiration !== null && !(Number(link.expiration) * MS_PER_SECOND > Date.now()))
    throw refuse('signature is already expired');
  return sandbox;
}

/** A link over one address for all sandboxes does not say whose it is, so the tokens of those that run are tried. */
async function findSigned(
  { database, tokens, rateLimiter }: E2bParts,
  link: SignedLink,
): Promise<SandboxRecord> {
  // Shared by all links of this kind: nothing is known of their callers yet.
  rateLimiter?.take('signed links', null);
  const running = await listSandboxesIn(database, ['running']);
  if (running.length > MAX_TRIED)
    throw refuse('the link does not say of which sandbox it is; use E2B_DOMAIN instead of E2B_SANDBOX_URL');
  const found = running.find(({ id }) => tokens.isSignedFor(id, link));
  if (found === undefined) throw refuse('invalid signature');
  return found;
}

/** Null: the request is not signed. */
function readLink({ query }: FastifyRequest, operation: SignedLink['operation']): SignedLink | null {
  const fields = query as Readonly<Record<string, unknown>>;
  const { signature, signature_expiration: expiration, path = '', username = '' } = fields;
  if (typeof signature !== 'string') return null;
  return {
    path: String(path),
    operation,
    user: String(username),
    expiration: typeof expiration === 'string' ? expiration : null,
    signature,
  };
}

function refuse(message: string): E2bRefusal {
  return new E2bRefusal(401, message);
}
