import type { ByteStream } from '@svc/contract/channel';
import { joinChunks } from '../client/byte-content.ts';
import { toSvcError } from '../client/to-svc-error.ts';
import { utf8Decoder } from '../client/utf8.ts';

/**
 * The output of a process, as it arrives. Read it once: with 1 MiB unread the process waits for its reader.
 * Leaving the iteration early drops the rest.
 */
export class OutputStream implements AsyncIterable<Uint8Array> {
  readonly #stream: ByteStream;

  constructor(stream: ByteStream) {
    this.#stream = stream;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    try {
      yield* this.#stream;
    } catch (error) {
      throw toSvcError(error);
    }
  }

  /** All of it, as text. */
  async text(): Promise<string> {
    return utf8Decoder().decode(await joinChunks(this));
  }

  /** Piece by piece as text; a character is never cut in two. */
  async *texts(): AsyncGenerator<string, void> {
    const decoder = utf8Decoder();
    for await (const chunk of this) {
      const text = decoder.decode(chunk, { stream: true });
      if (text !== '') yield text;
    }
    const rest = decoder.decode();
    if (rest !== '') yield rest;
  }

  /** Line by line, without the line ends. */
  async *lines(): AsyncGenerator<string, void> {
    let rest = '';
    for await (const text of this.texts()) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
    if (rest !== '') yield rest;
  }

  /** Drops current and future output. */
  discard(): void {
    this.#stream.discard();
  }
}
