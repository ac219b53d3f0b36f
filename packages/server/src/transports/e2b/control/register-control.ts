import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badField, type RestDispatch } from '../../../dispatch/rest-dispatch.ts';
import { makerOf } from '../../../handlers/files/link-maker.ts';
import { readJsonBody } from '../../rest/read-body.ts';
import { E2bCall } from '../wire/e2b-call.ts';
import { admitCall, type E2bParts } from '../wire/e2b-parts.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { ControlAnswer, ControlHandler, ControlRoutes } from './control-route.ts';
import { readingRoutes } from './readings.ts';
import { sandboxRoutes } from './sandboxes.ts';
import { snapshotRoutes } from './snapshots.ts';
import { volumeRoutes } from './volumes.ts';
import { registerVolumeContents } from './volume-contents.ts';

const ROUTES: ControlRoutes = { ...sandboxRoutes, ...snapshotRoutes, ...readingRoutes, ...volumeRoutes };
const NO_BODY_METHODS = new Set(['GET', 'DELETE']);

/** The control plane in E2B's words. */
export function registerControl(scope: FastifyInstance, parts: E2bParts): void {
  scope.setNotFoundHandler((request) => {
    throw new E2bRefusal(
      404,
      `There is no ${request.method} ${request.originalUrl.split('?')[0]} on this server`,
    );
  });
  registerVolumeContents(scope, parts);
  for (const [route, handler] of Object.entries(ROUTES)) {
    const [method = '', url = ''] = route.split(' ');
    scope.route({
      method,
      url,
      exposeHeadRoute: false,
      handler: async (request, reply) => await answer(parts, handler, request, reply),
    });
  }
}

async function answer(
  parts: E2bParts,
  handler: ControlHandler,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const authorization = authorizationOf(request);
  const { dispatch } = parts;
  const admit = (name: Parameters<RestDispatch['admit']>[0]) =>
    dispatch.admit(name, { slug: undefined, authorization, isRepeatable: false });
  const authority = await admit('sandboxes.list');
  admitCall(parts, { authority, request, reply });
  const call = new E2bCall(dispatch, { request, reply }, admit);
  const by = makerOf(authority);
  const body = NO_BODY_METHODS.has(request.method) ? {} : await readBody(parts, request);
  return send(
    reply,
    await handler(parts, {
      call,
      tokenOf: (target) => parts.tokens.tokenOf(target, by),
      params: request.params as Record<string, string>,
      query: textsOf(request.query),
      body,
      idempotencyKey: idempotencyKeyOf(request),
      identity: JSON.stringify([request.method, request.url, body]),
    }),
  );
}

/** E2B's clients send the key in a header of their own. */
function authorizationOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['x-api-key'];
  return typeof key === 'string' ? `Bearer ${key}` : headers.authorization;
}

async function readBody(
  { maxBodyBytes }: E2bParts,
  request: FastifyRequest,
): Promise<Record<string, unknown>> {
  const { value } = await readJsonBody(request.raw, { maxBytes: maxBodyBytes });
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badField('body', 'must be an object');
  return value as Record<string, unknown>;
}

function textsOf(query: unknown): Record<string, string> {
  const entries = Object.entries(query as Record<string, string | string[]>);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]),
  );
}

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && /^[a-z0-9-]{1,255}$/.test(key)) return key;
  throw badField('Idempotency-Key', 'must have 1–255 lowercase letters, digits and hyphens');
}

/** Without a body the length is said to be 0, which clients that parse every answer need. */
function send(reply: FastifyReply, { status, body, nextToken }: ControlAnswer): FastifyReply {
  if (nextToken !== undefined) reply.header('x-next-token', nextToken);
  reply.code(status);
  if (body === undefined) return status === 204 ? reply.send() : reply.header('content-length', '0').send();
  return reply.header('content-type', 'application/json').send(JSON.stringify(body));
}
