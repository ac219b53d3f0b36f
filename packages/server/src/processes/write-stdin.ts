import type { ChannelClient } from '@svc/contract';
import type { ByteSource } from '@svc/contract/rest';
import { KeyedMutex } from '@svc/contract/async';

interface StdinWrite {
  readonly content: ByteSource;
  readonly isLast: boolean;
  readonly signal: AbortSignal;
  /** The sandbox knows a write by its name, and drops what it was given before. Null: it cannot be repeated. */
  readonly name: string | null;
}

/** Writes to the input of processes, one call after the other for each, so that their bytes do not mix. */
export class StdinWriter {
  readonly #mutex = new KeyedMutex();

  /** Resolves when the process has taken everything; each piece waits until the one before was. */
  async write({ detached }: ChannelClient, key: string, write: StdinWrite): Promise<{ bytes: number }> {
    const { content, isLast, signal, name } = write;
    const at = (offset: number) => (name === null ? undefined : { name, offset });
    return await this.#mutex.run(key, async () => {
      let bytes = 0;
      for await (const chunk of content) {
        await detached.writeStdin(key, chunk, signal, at(bytes));
        bytes += chunk.length;
      }
      if (isLast) await detached.closeStdin(key, signal, at(bytes));
      return { bytes };
    });
  }
}
