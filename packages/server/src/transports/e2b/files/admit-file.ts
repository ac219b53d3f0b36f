import type { FastifyRequest } from 'fastify';
import { listSandboxesIn } from '../../../store/sandboxes.ts';
import type { SandboxRecord } from '../../../store/sandboxes.ts';
import { MAX_API_KEYS } from '../../../accounting/caps.ts';
import { listMakers } from '../../../handlers/files/link-maker.ts';
import { findRunning, requireToken, type SandboxCall } from '../wire/admit-sandbox.ts';
import { SANDBOX_HEADER } from '../wire/e2b-address.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import type { SignedLink } from '../wire/sandbox-tokens.ts';
import { authorityOf } from '../wire/token-authority.ts';

/** Tokens that are tried for a link that names no sandbox, and the part of them that may be of one organization. */
const MAX_TRIED = 10_000;
const MAX_TRIED_OF_ORGANIZATION = 2000;
/** The keys of an organization are looked up, which costs as much as so many tokens. */
const LOOK_UP_COST = 100;
const MS_PER_SECOND = 1000;

type Admitted = Pick<SandboxCall, 'sandbox' | 'authority'>;

/** The sandbox of a request for a file, which carries its token or is signed with it. */
export async function admitFileRequest(
  parts: E2bParts,
  request: FastifyRequest,
  operation: SignedLink['operation'],
): Promise<Admitted> {
  const link = readLink(request, operation);
  const isNamed = request.headers[SANDBOX_HEADER] !== undefined;
  if (link === null) {
    const sandbox = await findRunning(parts, request);
    return { sandbox, authority: await requireToken(parts, request, sandbox, ['envd']) };
  }
  const running = isNamed ? [await findRunning(parts, request)] : await listRunning(parts);
  const admitted = await findSigned(parts, link, running);
  if (link.expiration !== null && !(Number(link.expiration) * MS_PER_SECOND > Date.now()))
    throw refuse('signature is already expired');
  return admitted;
}

/** A link over one address for all sandboxes does not say whose it is, so the tokens of those that run are tried. */
async function listRunning({ database, rateLimiter }: E2bParts): Promise<readonly SandboxRecord[]> {
  // Shared by all links of this kind: nothing is known of their callers yet.
  rateLimiter?.take('signed links', null);
  return await listSandboxesIn(database, ['running']);
}

/** A signature does not say whose token it was made with, so those of the keys that are good are tried. */
async function findSigned(
  { database, tokens }: E2bParts,
  link: SignedLink,
  running: readonly SandboxRecord[],
): Promise<Admitted> {
  let triedOfAll = 0;
  for (const [organizationId, sandboxes] of Map.groupBy(running, (each) => each.organizationId)) {
    const makers = await listMakers(database, organizationId, MAX_API_KEYS);
    let triedOfThis = LOOK_UP_COST;
    for (const sandbox of sandboxes) {
      triedOfThis += makers.length;
      if (triedOfThis > MAX_TRIED_OF_ORGANIZATION) break;
      const by = tokens.signerOf(sandbox.id, link, makers);
      const authority = by === undefined ? undefined : await authorityOf(database, by, sandbox);
      if (authority !== undefined) return { sandbox, authority };
    }
    triedOfAll += triedOfThis;
    if (triedOfAll > MAX_TRIED)
      throw refuse('the link does not say of which sandbox it is; use E2B_DOMAIN instead of E2B_SANDBOX_URL');
  }
  throw refuse('invalid signature');
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
