import type { FastifyReply, FastifyRequest } from 'fastify';
import { getSandbox, type SandboxRecord } from '../../../store/sandboxes.ts';
import { TRAFFIC_TOKEN_HEADER } from '../../previews/our-credentials.ts';
import { fromE2bId, SANDBOX_HEADER } from './e2b-address.ts';
import { E2bCall } from './e2b-call.ts';
import { E2bRefusal, sandboxGone } from './e2b-failure.ts';
import { admitCall, type E2bParts } from './e2b-parts.ts';
import type { TokenKind } from './sandbox-tokens.ts';
import { authorityOf, type TokenAuthority } from './token-authority.ts';

/** A request that reached a running sandbox, and may. */
export interface SandboxCall {
  readonly sandbox: SandboxRecord;
  readonly authority: TokenAuthority;
  readonly call: E2bCall;
}

const TOKEN_HEADER: Readonly<Record<Exclude<TokenKind, 'volume'>, string>> = {
  envd: 'x-access-token',
  traffic: TRAFFIC_TOKEN_HEADER,
};

/** The running sandbox that a request names. @throws E2bRefusal as E2B's gateway answers when there is none */
export async function findRunning(
  { database }: Pick<E2bParts, 'database'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
): Promise<SandboxRecord> {
  const text = String(headers[SANDBOX_HEADER] ?? '');
  const id = fromE2bId(text);
  const sandbox = id === undefined ? undefined : await getSandbox(database, id);
  if (sandbox === undefined || sandbox.removedAt !== null || sandbox.observed !== 'running')
    throw sandboxGone(text);
  return sandbox;
}

/**
 * @param kinds the tokens that open what is asked for
 * @throws E2bRefusal 401 without one of them, and when the key that it was given to was revoked
 */
export async function requireToken(
  { tokens, database }: Pick<E2bParts, 'tokens' | 'database'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
  sandbox: SandboxRecord,
  kinds: readonly Exclude<TokenKind, 'volume'>[],
): Promise<TokenAuthority> {
  for (const kind of kinds) {
    const token = headers[TOKEN_HEADER[kind]];
    const by = typeof token === 'string' ? tokens.makerOf({ kind, id: sandbox.id }, token) : undefined;
    const authority = by === undefined ? undefined : await authorityOf(database, by, sandbox);
    if (authority !== undefined) return authority;
  }
  throw new E2bRefusal(
    401,
    'unauthorized access, please provide a valid access token or method signing if supported',
  );
}

/** Counts the request for the organization of the sandbox. */
export function enterSandbox(
  parts: E2bParts,
  { sandbox, authority }: Pick<SandboxCall, 'sandbox' | 'authority'>,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): SandboxCall {
  admitCall(parts, { authority, request, reply });
  const call = new E2bCall(parts.dispatch, { request, reply }, async () => await Promise.resolve(authority));
  return { sandbox, authority, call };
}
