import { Readable } from 'node:stream';
import { PlatformError } from '@svc/contract';
import type { CodeContext } from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import { readJsonBody } from '../../rest/read-body.ts';
import { enterSandbox, findRunning, requireToken, type SandboxCall } from '../wire/admit-sandbox.ts';
import { describeE2bFailure, E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { executionLines } from './execution-lines.ts';
import { choiceOf, defaultContexts, languageOfDefault } from './languages.ts';

type Fields = Readonly<Record<string, unknown>>;
type Work = (call: SandboxCall, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

const JSON_TYPE = 'application/json';

/** E2B's code interpreter, on the interpreters of the sandbox. */
export function registerCode(scope: FastifyInstance, parts: E2bParts): void {
  void scope.register(async (inner) => {
    setFailures(inner, parts);
    registerRoutes(inner, parts);
    await Promise.resolve();
  });
}

/** As plain text. */
function setFailures(scope: FastifyInstance, parts: E2bParts): void {
  scope.setErrorHandler((error, request, reply) => {
    const { status, body } = describeE2bFailure(error, request.id);
    // The answer of E2B's gateway is JSON.
    if (status === 502)
      return reply.code(status).header('content-type', JSON_TYPE).send(JSON.stringify(body));
    if (status === 500) parts.logger.error({ err: error, requestId: request.id }, 'a request failed');
    return reply
      .code(status)
      .header('content-type', 'text/plain; charset=utf-8')
      .send(String(body['message']));
  });
}

function registerRoutes(scope: FastifyInstance, parts: E2bParts): void {
  const route =
    (kinds: Parameters<typeof requireToken>[3], work: Work) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const sandbox = await findRunning(parts, request);
      const authority = await requireToken(parts, request, sandbox, kinds);
      return await work(enterSandbox(parts, { sandbox, authority }, { request, reply }), request, reply);
    };
  scope.post(
    '/execute',
    route(['envd'], async (call, request, reply) => await execute(parts, call, request, reply)),
  );
  const both = ['traffic', 'envd'] as const;
  scope.post(
    '/contexts',
    route(both, async (call, request, reply) => await createContext(parts, call, request, reply)),
  );
  scope.get('/contexts', { exposeHeadRoute: false }, route(both, listContexts));
  scope.post('/contexts/:id/restart', route(both, restartContext));
  scope.delete('/contexts/:id', route(both, removeContext));
  scope.get('/health', { exposeHeadRoute: false }, async (request, reply) => {
    await findRunning(parts, request);
    return await reply.header('content-type', 'text/plain').send('OK');
  });
}

async function execute(
  parts: E2bParts,
  { call, sandbox }: SandboxCall,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const fields = await readFields(parts, request);
  const [contextId, language] = [textOf(fields, 'context_id'), textOf(fields, 'language')];
  const code = textOf(fields, 'code') ?? '';
  if (contextId !== null && language !== null)
    throw new E2bRefusal(400, 'Only one of context_id or language can be provided');
  const params = { sandbox_id: sandbox.id };
  const defaultLanguage = contextId === null ? undefined : languageOfDefault(contextId);
  const place =
    contextId === null || defaultLanguage !== undefined
      ? choiceOf(defaultLanguage ?? language)
      : { context: contextId };
  const body = { code, ...place, ...variablesOf(fields), print_result: false };
  const events = await explain(contextId, call.rest('code.stream', { params, body }));
  const lines = Readable.from(executionLines(events), { objectMode: false });
  return await reply.header('content-type', JSON_TYPE).send(lines);
}

async function createContext(
  parts: E2bParts,
  { call, sandbox }: SandboxCall,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const fields = await readFields(parts, request);
  const cwd = textOf(fields, 'cwd');
  const body = { ...choiceOf(textOf(fields, 'language')), ...(cwd === null ? {} : { cwd }) };
  const made = await call.rest('contexts.create', { params: { sandbox_id: sandbox.id }, body });
  return sendJson(reply, toContext(sandbox, made));
}

async function listContexts({ call, sandbox }: SandboxCall, _request: FastifyRequest, reply: FastifyReply) {
  const made = await call.rest('contexts.list', { params: { sandbox_id: sandbox.id } });
  return sendJson(reply, [
    ...defaultContexts(workdirOf(sandbox)),
    ...made.map((context) => toContext(sandbox, context)),
  ]);
}

async function restartContext(of: SandboxCall, request: FastifyRequest, reply: FastifyReply) {
  const params = contextOf(of, request);
  if (languageOfDefault(params.context_id) !== undefined)
    throw new E2bRefusal(400, 'A default context cannot be restarted; create a context for the code instead');
  await explain(params.context_id, of.call.rest('contexts.restart', { params }));
  return sendJson(reply, null);
}

async function removeContext(of: SandboxCall, request: FastifyRequest, reply: FastifyReply) {
  const params = contextOf(of, request);
  if (languageOfDefault(params.context_id) !== undefined)
    throw new E2bRefusal(400, 'A default context cannot be removed');
  await explain(params.context_id, of.call.rest('contexts.remove', { params }));
  return sendJson(reply, null);
}

function contextOf({ sandbox }: SandboxCall, { params }: FastifyRequest) {
  // The routes have this parameter.
  return { sandbox_id: sandbox.id, context_id: (params as { readonly id: string }).id };
}

async function explain<T>(contextId: string | null, work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (PlatformError.is(error, 'context_not_found') || PlatformError.is(error, 'context_lost'))
      throw new E2bRefusal(404, `Context ${contextId ?? ''} not found`);
    throw error;
  });
}

function toContext(sandbox: SandboxCall['sandbox'], { id, language, kernel, cwd }: CodeContext): object {
  return { id, language: language ?? kernel ?? '', cwd: cwd ?? workdirOf(sandbox) };
}

function workdirOf({ spec, resolved }: SandboxCall['sandbox']): string {
  return resolved?.workdir ?? spec.runtime?.workdir ?? '/';
}

async function readFields({ maxBodyBytes }: E2bParts, request: FastifyRequest): Promise<Fields> {
  const { value } = await readJsonBody(request.raw, { maxBytes: maxBodyBytes });
  if (typeof value !== 'object' || value === null) throw badField('body', 'must be an object');
  return value as Fields;
}

/** Clients send null for what is not given. */
function textOf(fields: Fields, field: string): string | null {
  const value = fields[field] ?? null;
  if (value !== null && typeof value !== 'string') throw badField(field, 'must be a text');
  return value;
}

/** For this execution alone; a Jupyter kernel cannot have them. */
function variablesOf(fields: Fields): { readonly env?: Record<string, string> } {
  const value = fields['env_vars'] ?? {};
  const isMap = typeof value === 'object' && !Array.isArray(value);
  if (!isMap || !Object.values(value).every((each) => typeof each === 'string'))
    throw badField('env_vars', 'must be an object of texts');
  return Object.keys(value).length === 0 ? {} : { env: { ...(value as Record<string, string>) } };
}

function sendJson(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.header('content-type', JSON_TYPE).send(JSON.stringify(value));
}
