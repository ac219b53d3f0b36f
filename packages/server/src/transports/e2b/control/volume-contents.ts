import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { PlatformError } from '@svc/contract';
import type { VolumeFileInfo } from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import { findOrganization } from '../../../store/organizations.ts';
import { findSlugOfVolume } from '../../../store/volumes.ts';
import { streamBody } from '../../rest/read-body.ts';
import { fromE2bId } from '../wire/e2b-address.ts';
import { E2bCall } from '../wire/e2b-call.ts';
import { E2bRefusal, notOffered } from '../wire/e2b-failure.ts';
import { admitCall, type E2bParts } from '../wire/e2b-parts.ts';
import { authorityOf } from '../wire/token-authority.ts';

const MAX_ENTRIES = 50_000;

interface Contents {
  readonly call: E2bCall;
  readonly id: string;
  /** Relative to the volume; empty: the volume itself. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

type Work = (contents: Contents, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Files of volumes, which the token of the volume opens. */
export function registerVolumeContents(scope: FastifyInstance, parts: E2bParts): void {
  const route = (method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE', what: string, work: Work) =>
    scope.route({
      method,
      url: `/volumecontent/:id/${what}`,
      exposeHeadRoute: false,
      config: { isBodyStreamed: () => method === 'PUT' },
      handler: async (request, reply) =>
        await work(await admit(parts, request, reply), request, reply).catch(translate),
    });
  route('GET', 'file', readFile);
  route('PUT', 'file', async (...args) => await writeFile(parts, ...args));
  route('GET', 'dir', listFolder);
  route('POST', 'dir', makeFolder);
  route('GET', 'path', async (contents, _request, reply) => sendJson(reply, await describe(contents)));
  route('DELETE', 'path', removePath);
  route('PATCH', 'path', async () => await Promise.reject(NO_ATTRIBUTES));
}

const NO_ATTRIBUTES = notOffered(
  'Owner and mode of files of a volume cannot be set here; set them in a sandbox that mounts the volume',
);

async function admit(parts: E2bParts, request: FastifyRequest, reply: FastifyReply): Promise<Contents> {
  // The routes have this parameter.
  const id = fromE2bId((request.params as { readonly id: string }).id);
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const by =
    id === undefined || token === undefined ? undefined : parts.tokens.makerOf({ kind: 'volume', id }, token);
  if (id === undefined || by === undefined) throw notOpened();
  const slug = await findSlugOfVolume(parts.database, id);
  const organization = slug === undefined ? undefined : await findOrganization(parts.database, slug);
  if (organization === undefined) throw new E2bRefusal(404, 'There is no such volume');
  const authority = await authorityOf(parts.database, by, { organizationId: organization.id });
  if (authority === undefined) throw notOpened();
  admitCall(parts, { authority, request, reply });
  const call = new E2bCall(parts.dispatch, { request, reply }, async () => await Promise.resolve(authority));
  const query = request.query as Readonly<Record<string, string>>;
  return { call, id, path: posix.join('/', query['path'] ?? '').slice(1), query };
}

function notOpened(): E2bRefusal {
  return new E2bRefusal(401, 'The token does not open this volume');
}

async function readFile({ call, id, path }: Contents, _request: FastifyRequest, reply: FastifyReply) {
  const content = await call.rest('volumeFiles.read', { params: { id }, headers: pathHeader(path) });
  return await reply
    .header('content-type', 'application/octet-stream')
    .send(Readable.from(content, { objectMode: false }));
}

async function writeFile(parts: E2bParts, contents: Contents, request: FastifyRequest, reply: FastifyReply) {
  const { call, id, path, query } = contents;
  refuseAttributes(query);
  const { content } = streamBody(request.raw, parts.maxBodyPauseMs);
  if (query['force'] !== 'true' && (await find(contents)) !== undefined)
    throw new PlatformError('name_already_exists', `${path} exists; write it with force`);
  await call.rest('volumeFiles.write', { params: { id }, headers: pathHeader(path), body: content });
  return sendJson(reply.code(201), await describe(contents));
}

async function listFolder(
  { call, id, path, query }: Contents,
  _request: FastifyRequest,
  reply: FastifyReply,
) {
  const depth = Number(query['depth'] ?? 1);
  if (!Number.isInteger(depth) || depth < 1) throw badField('depth', 'must be a whole number from 1');
  const found: object[] = [];
  const walk = async (folder: string, left: number): Promise<void> => {
    const { entries } = await call.rest('volumeFiles.list', { params: { id }, headers: pathHeader(folder) });
    for (const entry of entries) {
      if (found.length === MAX_ENTRIES) throw badField('depth', `lists more than ${MAX_ENTRIES} entries`);
      found.push(toEntry(entry));
      if (entry.kind === 'directory' && left > 1) await walk(entry.path, left - 1);
    }
  };
  await walk(path, depth);
  return sendJson(reply, found);
}

async function makeFolder(contents: Contents, _request: FastifyRequest, reply: FastifyReply) {
  const { call, id, path, query } = contents;
  refuseAttributes(query);
  if ((await find(contents)) !== undefined) throw new PlatformError('name_already_exists', `${path} exists`);
  // Without force, only the last folder of the path is made.
  if (query['force'] !== 'true') await describe({ ...contents, path: posix.join('/', path, '..').slice(1) });
  await call.rest('volumeFiles.mkdir', { params: { id }, body: { path } });
  return sendJson(reply.code(201), await describe(contents));
}

async function removePath({ call, id, path }: Contents, _request: FastifyRequest, reply: FastifyReply) {
  const headers = { ...pathHeader(path), 'x-svc-file-recursive': 'true' } as const;
  await call.rest('volumeFiles.remove', { params: { id }, headers });
  return await reply.code(204).send();
}

async function describe({ call, id, path }: Contents): Promise<object> {
  const { metadata } = await call.rest('volumeFiles.stat', { params: { id }, headers: pathHeader(path) });
  return toEntry(metadata);
}

async function find(contents: Contents): Promise<object | undefined> {
  return await describe(contents).catch((error: unknown) => {
    if (PlatformError.is(error, 'volume_file_not_found')) return undefined;
    throw error;
  });
}

function toEntry({ path, kind, size, mode, uid, gid, ...times }: VolumeFileInfo): object {
  const modified = times.modified_at ?? new Date(0).toISOString();
  return {
    name: posix.basename(path),
    type: kind,
    path: posix.join('/', path),
    size,
    mode,
    uid,
    gid,
    atime: times.accessed_at ?? modified,
    mtime: modified,
    ctime: times.created_at ?? modified,
  };
}

/** Accepting them without an effect would be a lie. */
function refuseAttributes(query: Readonly<Record<string, string>>): void {
  if (['uid', 'gid', 'mode'].some((field) => query[field] !== undefined)) throw NO_ATTRIBUTES;
}

function pathHeader(path: string): { readonly 'x-svc-file-path': string } {
  return { 'x-svc-file-path': Buffer.from(path).toString('base64url') };
}

function translate(error: unknown): never {
  if (PlatformError.is(error, 'volume_file_not_found')) throw new E2bRefusal(404, error.message);
  throw error;
}

function sendJson(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.header('content-type', 'application/json').send(JSON.stringify(value));
}
