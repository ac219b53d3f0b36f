import { PlatformError } from '@svc/contract';
import type { ByteSource } from '@svc/contract/rest';
import { FairLimit, type Owner } from '../../access/fair-limit.ts';
import { followUpload } from '../../dispatch/follow-upload.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { FileInfo, FilePlace, GuestFiles, NewFileOptions } from '../../files/guest-files.ts';
import type { FileContent } from '../../files/open-content.ts';

/** Reads and writes at once, over all organizations; each holds some megabytes. */
const MAX_TRANSFERS = 256;

type Exchange = Pick<RestCall, 'signal' | 'setHeader'>;

export interface RangeHeaders {
  readonly range?: string | undefined;
  readonly 'if-range'?: string | string[] | undefined;
}

/** Content of files on its way to and from callers; fairly shared between organizations. */
export class FileTransfers {
  readonly #files: GuestFiles;
  readonly #limit = new FairLimit(MAX_TRANSFERS);

  constructor(files: GuestFiles) {
    this.#files = files;
  }

  async read(owner: Owner, place: FilePlace, headers: RangeHeaders, call: Exchange): Promise<ByteSource> {
    // Files have no validator that is strong enough to be compared with.
    const range = headers['if-range'] === undefined ? headers.range : undefined;
    const leave = this.#limit.enter(owner);
    // The signal aborts when the answer has ended, complete or not.
    call.signal.addEventListener('abort', leave, { once: true });
    try {
      const content = await this.#files.read(place, { range }, call.signal);
      describeContent(call, content);
      return content.content;
    } catch (error) {
      leave();
      if (PlatformError.is(error, 'range_not_satisfiable'))
        call.setHeader('content-range', `bytes */${String(error.details?.['size'])}`);
      throw error;
    }
  }

  async write(
    owner: Owner,
    place: FilePlace,
    { body, ...options }: NewFileOptions & { readonly body: ByteSource },
    { signal }: Pick<Exchange, 'signal'>,
  ): Promise<FileInfo> {
    const leave = this.#limit.enter(owner);
    const upload = followUpload(body);
    try {
      return await this.#files.write(place, upload.content, options, signal);
    } catch (error) {
      // A broken body also ends the write in the sandbox; the body's error is the cause.
      throw upload.failure() ?? error;
    } finally {
      leave();
    }
  }
}

function describeContent(call: Exchange, { start, end, isPartial, totalBytes }: FileContent): void {
  call.setHeader('accept-ranges', 'bytes');
  if (end !== null) call.setHeader('content-length', String(end - start));
  if (isPartial) call.setHeader('content-range', `bytes ${start}-${Number(end) - 1}/${totalBytes}`);
}
