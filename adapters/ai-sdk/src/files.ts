import { posix } from 'node:path';
import { SvcError, type Content, type Sandbox } from '@svc/sdk';

interface Place {
  readonly path: string;
  readonly abortSignal?: AbortSignal;
}

interface TextPlace extends Place {
  readonly encoding?: string;
  readonly startLine?: number;
  readonly endLine?: number;
}

/** Files as the AI SDK asks for them: null for one that is not there, folders above are made. */
export class Files {
  readonly #sandbox: Sandbox;
  readonly #toPath: (path: string) => string;

  constructor(sandbox: Sandbox, toPath: (path: string) => string) {
    this.#sandbox = sandbox;
    this.#toPath = toPath;
  }

  async stream({ path, abortSignal }: Place): Promise<ReadableStream<Uint8Array> | null> {
    const call = callOf(abortSignal);
    const whole = this.#toPath(path);
    return await unlessAbsent(async () => {
      await this.#sandbox.files.stat(whole, call);
      return ReadableStream.from(this.#sandbox.files.readStream(whole, call));
    });
  }

  async bytes({ path, abortSignal }: Place): Promise<Uint8Array | null> {
    return await unlessAbsent(() => this.#sandbox.files.read(this.#toPath(path), callOf(abortSignal)));
  }

  /** Lines from `startLine` to `endLine`, counted from 1, both included. */
  async text({ encoding = 'utf-8', startLine = 1, endLine, ...place }: TextPlace): Promise<string | null> {
    const bytes = await this.bytes(place);
    if (bytes === null) return null;
    const text = new TextDecoder(encoding).decode(bytes);
    if (startLine === 1 && endLine === undefined) return text;
    return text
      .split('\n')
      .slice(startLine - 1, endLine)
      .join('\n');
  }

  async write({ path, content, abortSignal }: Place & { readonly content: Content }): Promise<void> {
    const whole = this.#toPath(path);
    const call = callOf(abortSignal);
    await this.#sandbox.files.mkdir(posix.dirname(whole), call);
    await this.#sandbox.files.write(whole, content, call);
  }

  async writeText({
    content,
    encoding = 'utf-8',
    ...place
  }: Place & { readonly content: string; readonly encoding?: string }): Promise<void> {
    await this.write({ ...place, content: encode(content, encoding) });
  }
}

/** @throws SvcError `invalid_request` for an encoding that Node cannot write */
function encode(text: string, encoding: string): Uint8Array {
  if (Buffer.isEncoding(encoding)) return new Uint8Array(Buffer.from(text, encoding));
  const message = `There is no encoding '${encoding}' to write in: use utf-8, utf16le or latin1`;
  throw new SvcError('invalid_request', message, { details: { field: 'encoding' } });
}

async function unlessAbsent<T>(reading: () => Promise<T>): Promise<T | null> {
  try {
    return await reading();
  } catch (error) {
    if (SvcError.is(error, 'not_found')) return null;
    throw error;
  }
}

function callOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
