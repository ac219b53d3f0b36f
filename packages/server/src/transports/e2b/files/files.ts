import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { PlatformError, type FileMetadata } from '@svc/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import type { FilePlace } from '../../../files/guest-files.ts';
import { ownerOf } from '../../../handlers/files/file-place.ts';
import { streamBody } from '../../rest/read-body.ts';
import { pathFor, requireAccount, type Account } from '../envd/accounts.ts';
import { idsOf } from '../envd/filesystem.ts';
import { enterSandbox, type SandboxCall } from '../wire/admit-sandbox.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { metadataOf, readMetadata } from '../wire/file-metadata.ts';
import { noteFile } from '../wire/note-file.ts';
import { admitFileRequest } from './admit-file.ts';
import { isMultipart, readMultipart, type UploadedFile } from './multipart.ts';

const PARTIAL_CONTENT = 206;

interface FileRequest {
  readonly path: string;
  readonly user: string | null;
}

interface WrittenFile {
  readonly name: string;
  readonly type: 'file';
  readonly path: string;
  readonly metadata?: FileMetadata;
}

/** Whole files of sandboxes, and ranges of them: read and written as bytes. */
export function registerFiles(scope: FastifyInstance, parts: E2bParts): void {
  scope.get('/files', { exposeHeadRoute: false }, async (request, reply) => {
    try {
      return await download(parts, request, reply);
    } catch (error) {
      throw translate(error);
    }
  });
  // Its size is limited by the disk of the sandbox alone.
  scope.post('/files', { config: { isBodyStreamed: () => true } }, async (request, reply) => {
    try {
      return await upload(parts, request, reply);
    } catch (error) {
      throw translate(error);
    }
  });
}

async function download(
  parts: E2bParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { path, user } = readQuery(request);
  const admitted = await admitFileRequest(parts, request, 'read');
  const { call, sandbox, authority } = enterSandbox(parts, admitted, { request, reply });
  const account = await accountOf(parts, sandbox.id, user, call.signal);
  const place = { sandboxId: sandbox.id, path: pathFor(account, path) };
  const setHeader = (name: string, value: string) => void reply.header(name, value);
  const exchange = { signal: call.signal, setHeader };
  const content = await parts.transfers
    .read(ownerOf(authority), place, request.headers, exchange)
    .catch((error: unknown) => explainRead(place, error));
  if (reply.hasHeader('content-range')) reply.code(PARTIAL_CONTENT);
  const name = encodeURIComponent(posix.basename(place.path));
  return await reply
    .header('content-type', 'application/octet-stream')
    .header('content-disposition', `inline; filename*=UTF-8''${name}`)
    .send(Readable.from(content, { objectMode: false }));
}

async function upload(parts: E2bParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { path, user } = readQuery(request);
  const metadata = readMetadata(request.headers);
  const admitted = await admitFileRequest(parts, request, 'write');
  const entered = enterSandbox(parts, admitted, { request, reply });
  const sandboxId = entered.sandbox.id;
  const account = await accountOf(parts, sandboxId, user, entered.call.signal);
  const body = decode(request, streamBody(request.raw, parts.maxBodyPauseMs).content);
  const written: WrittenFile[] = [];
  for await (const { path: given, content } of filesIn(request, path, body)) {
    const place = { sandboxId, path: pathFor(account, path === '' ? requirePath(given) : path) };
    if (written.some((file) => file.path === place.path))
      throw new E2bRefusal(
        400,
        `you cannot upload multiple files to the same path '${place.path}' in one upload request`,
      );
    written.push(await write(parts, entered, place, { body: content, account, metadata }));
  }
  return await reply.header('content-type', 'application/json').send(JSON.stringify(written));
}

async function accountOf(
  { files }: E2bParts,
  sandboxId: string,
  user: string | null,
  signal: AbortSignal,
): Promise<Account> {
  return requireAccount(await files.users(sandboxId, signal), user);
}

async function* filesIn(
  { headers }: FastifyRequest,
  path: string,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<UploadedFile, void> {
  if (isMultipart(headers)) yield* readMultipart(headers, body);
  else if (path !== '') yield { path, content: body };
  else throw badField('path', 'must be given in the query when the body is the file');
}

/** The file belongs to the account afterwards, also one that was there. */
async function write(
  parts: E2bParts,
  entered: SandboxCall,
  place: FilePlace,
  {
    body,
    account,
    metadata,
  }: {
    readonly body: AsyncIterable<Uint8Array>;
    readonly account: Account;
    readonly metadata: FileMetadata | undefined;
  },
): Promise<WrittenFile> {
  const { authority, call } = entered;
  const target = await behindLink(parts, place, call.signal);
  const options = { body, owner: idsOf(account), parents: true, metadata };
  const info = await parts.transfers.write(ownerOf(authority), target, options, call);
  const { path } = place;
  await noteFile(parts, entered, { type: 'file_written', path: target.path, bytes: info.size });
  const own = metadataOf(info);
  const shown = Object.keys(own).length === 0 ? {} : { metadata: own };
  return { name: posix.basename(path), type: 'file', path, ...shown };
}

/** E2B's clients write what a link leads to; one that leads nowhere is replaced. */
async function behindLink({ files }: E2bParts, place: FilePlace, signal: AbortSignal): Promise<FilePlace> {
  try {
    const { kind, link } = await files.stat(place, signal);
    if ((link?.kind ?? kind) === 'dir') throw isFolder(place);
    return link === null ? place : { ...place, path: link.target };
  } catch (error) {
    if (PlatformError.is(error, 'not_found')) return place;
    throw error;
  }
}

/** @throws E2bRefusal for an encoding that is not known */
function decode({ headers }: FastifyRequest, body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return body;
  if (encoding !== 'gzip') throw new E2bRefusal(400, `unsupported content encoding: ${encoding}`);
  const gunzip = createGunzip();
  // A failure of the body ends the content with the same error.
  pipeline(Readable.from(body, { objectMode: false }), gunzip).catch((error: Error) => gunzip.destroy(error));
  return gunzip;
}

function readQuery({ query }: FastifyRequest): FileRequest {
  const { path = '', username } = query as Readonly<Record<string, unknown>>;
  if (typeof path !== 'string') throw badField('path', 'must be given once');
  return { path, user: typeof username === 'string' && username !== '' ? username : null };
}

function requirePath(path: string | undefined): string {
  if (path !== undefined) return path;
  throw badField('path', 'must be given in the query, or as the filename of each part');
}

function isFolder({ path }: FilePlace): E2bRefusal {
  return new E2bRefusal(400, `path '${path}' is a directory`);
}

function explainRead(place: FilePlace, error: unknown): never {
  if (PlatformError.is(error, 'not_found')) throw new E2bRefusal(404, `path '${place.path}' does not exist`);
  if (PlatformError.is(error) && error.details?.['errno'] === 'EISDIR') throw isFolder(place);
  throw error;
}

const STATUS_OF_CONNECT = { unauthenticated: 401, not_found: 404 } as const;

/** Failures of the parts that this shares with RPC. */
function translate(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  const status =
    error.code in STATUS_OF_CONNECT ? STATUS_OF_CONNECT[error.code as keyof typeof STATUS_OF_CONNECT] : 400;
  return new E2bRefusal(status, error.message);
}
