import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { FileFailed, PlatformError, type ChannelClient, type ChannelFiles } from '@svc/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import { streamBody } from '../../rest/read-body.ts';
import { enterSandbox } from '../wire/admit-sandbox.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { Accounts, pathFor, type Account } from '../envd/accounts.ts';
import { ConnectError } from '../wire/connect-error.ts';
import { noteFile } from '../wire/note-file.ts';
import { find, isMissing, makeFolder } from '../envd/filesystem.ts';
import { admitFileRequest } from './admit-file.ts';
import { isMultipart, readMultipart, type UploadedFile } from './multipart.ts';

const FILE_MODE = 0o644;
const OPEN_MS = 10_000;

interface FileRequest {
  readonly path: string;
  readonly user: string | null;
}

interface WrittenFile {
  readonly name: string;
  readonly type: 'file';
  readonly path: string;
}

/** Whole files of sandboxes: read and written as bytes, over a connection to the sandbox of their own. */
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
  const { call, sandbox } = enterSandbox(parts, admitted, { request, reply });
  const channel = await openOwn(parts, sandbox.id, call.signal, reply);
  const accounts = await Accounts.read(channel.files, call.signal);
  const place = pathFor(accounts.require(user), path);
  const entry = await find(channel.files, place, call.signal);
  if (entry === undefined) throw new E2bRefusal(404, `path '${place}' does not exist`);
  if (entry.kind === 'dir') throw new E2bRefusal(400, `path '${place}' is a directory`);
  const chunks = channel.files.readStream(place, call.signal);
  const first = await chunks.next();
  // Files of the kernel have a size of 0 and content all the same.
  if (entry.size > 0 || first.done === true) reply.header('content-length', String(entry.size));
  async function* content(): AsyncGenerator<Uint8Array> {
    for (let next = first; next.done !== true; next = await chunks.next()) yield next.value;
  }
  return await reply
    .header('content-type', 'application/octet-stream')
    .header('content-disposition', `inline; filename*=UTF-8''${encodeURIComponent(posix.basename(place))}`)
    .send(Readable.from(content(), { objectMode: false }));
}

async function upload(parts: E2bParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { path, user } = readQuery(request);
  const admitted = await admitFileRequest(parts, request, 'write');
  const entered = enterSandbox(parts, admitted, { request, reply });
  const { call, sandbox } = entered;
  const channel = await openOwn(parts, sandbox.id, call.signal, reply);
  const accounts = await Accounts.read(channel.files, call.signal);
  const account = accounts.require(user);
  const body = decode(request, streamBody(request.raw, parts.maxBodyPauseMs).content);
  const written: WrittenFile[] = [];
  for await (const { path: given, content } of filesIn(request, path, body)) {
    const place = pathFor(account, path === '' ? requirePath(given) : path);
    if (written.some((file) => file.path === place))
      throw new E2bRefusal(
        400,
        `you cannot upload multiple files to the same path '${place}' in one upload request`,
      );
    const bytes = await write(channel.files, place, content, { account, signal: call.signal });
    await noteFile(parts, entered, { type: 'file_written', path: place, bytes });
    written.push({ name: posix.basename(place), type: 'file', path: place });
  }
  return await reply.header('content-type', 'application/json').send(JSON.stringify(written));
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

/** What was begun is not left behind; a file that was there before is overwritten from its beginning. @returns bytes */
async function write(
  files: ChannelFiles,
  path: string,
  content: AsyncIterable<Uint8Array>,
  { account, signal }: { readonly account: Account; readonly signal: AbortSignal },
): Promise<number> {
  const found = await find(files, path, signal);
  if (found?.kind === 'dir') throw new E2bRefusal(400, `path '${path}' is a directory`);
  await makeFolder(files, posix.dirname(path), account, signal);
  let bytes = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      bytes += chunk.length;
      yield chunk;
    }
  }
  try {
    await files.writeFile(path, counted(), found === undefined ? { mode: FILE_MODE } : {}, signal);
  } catch (error) {
    if (found === undefined) await files.remove(path).catch(() => undefined);
    throw error;
  }
  await files.setStat(path, { uid: account.uid, gid: account.gid }, {}, signal);
  return bytes;
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

async function openOwn(
  { openChannel }: E2bParts,
  sandboxId: string,
  caller: AbortSignal,
  reply: FastifyReply,
): Promise<ChannelClient> {
  const channel = await openChannel(sandboxId, AbortSignal.any([caller, AbortSignal.timeout(OPEN_MS)]));
  if (reply.raw.destroyed) channel.close();
  reply.raw.once('close', () => channel.close());
  return channel;
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

const STATUS_OF_CONNECT = { unauthenticated: 401, not_found: 404 } as const;

/** Failures of the parts that this shares with RPC. */
function translate(error: unknown): unknown {
  if (error instanceof ConnectError) {
    const status =
      error.code in STATUS_OF_CONNECT ? STATUS_OF_CONNECT[error.code as keyof typeof STATUS_OF_CONNECT] : 400;
    return new E2bRefusal(status, error.message);
  }
  if (isMissing(error) && error instanceof Error) return new E2bRefusal(404, error.message);
  if (error instanceof FileFailed)
    return new PlatformError(error.platformCode, error.message, { cause: error });
  return error;
}
