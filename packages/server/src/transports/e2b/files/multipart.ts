import type { IncomingHttpHeaders } from 'node:http';
import { Readable, type Readable as Bytes } from 'node:stream';
import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import { badField } from '../../../dispatch/rest-dispatch.ts';

/** Parts of other names are ignored. */
const FILE_FIELD = 'file';
const MAX_PARTS = 10_000;
const MAX_NAME_BYTES = 16 * 1024;

/** A file of a form. Its content must be read to the end before the next one comes. */
export interface UploadedFile {
  /** The whole path as the client gave it; undefined: the part has none. */
  readonly path: string | undefined;
  readonly content: AsyncIterable<Uint8Array>;
}

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\b/i.test(headers['content-type'] ?? '');
}

/** The files of a form, one after the other, without holding any of them. @throws PlatformError `invalid_request` */
export async function* readMultipart(
  headers: IncomingHttpHeaders,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<UploadedFile, void> {
  const parser = makeParser(headers);
  const found: UploadedFile[] = [];
  let notify = Promise.withResolvers<void>();
  let end: { readonly error: unknown } | undefined;
  const finish = (error: unknown) => {
    end ??= { error };
    notify.resolve();
  };
  parser.on('file', (field: string, content: Bytes, path: string | undefined) => {
    if (field !== FILE_FIELD) {
      content.resume();
      return;
    }
    // The parser fails with it; without a listener the process would end.
    content.on('error', () => undefined);
    found.push({ path: path === '' ? undefined : path, content });
    notify.resolve();
  });
  parser.on('finish', () => finish(null));
  parser.on('error', (error: unknown) => finish(badForm(error)));
  for (const limit of ['partsLimit', 'filesLimit'] as const)
    parser.on(limit, () => finish(badField('body', `must have at most ${MAX_PARTS} files`)));
  const source = Readable.from(body, { objectMode: false });
  source.on('error', (error) => {
    finish(error);
    parser.destroy();
  });
  source.pipe(parser);
  try {
    for (;;) {
      const file = found.shift();
      if (file !== undefined) {
        yield file;
        continue;
      }
      if (end !== undefined) {
        if (end.error !== null) throw end.error;
        return;
      }
      await notify.promise;
      notify = Promise.withResolvers<void>();
    }
  } finally {
    source.destroy();
    parser.destroy();
  }
}

function makeParser(headers: IncomingHttpHeaders): Busboy {
  try {
    return new Busboy({
      // The content type was seen to be there.
      headers: headers as BusboyHeaders,
      preservePath: true,
      isPartAFile: (field) => field === FILE_FIELD,
      limits: { parts: MAX_PARTS, fields: 0, fieldNameSize: MAX_NAME_BYTES },
    });
  } catch (error) {
    throw badForm(error);
  }
}

function badForm(error: unknown): Error {
  return badField('body', `is not a valid form: ${error instanceof Error ? error.message : String(error)}`);
}
