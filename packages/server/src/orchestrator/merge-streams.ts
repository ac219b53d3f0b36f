import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';

const RETRY_MS = 500;

type Open<Item> = (signal: AbortSignal) => AsyncIterable<Item>;

/**
 * Yields what each of the streams yields. One that ends, or whose node is away, is opened again. No stream is read ahead of the caller by
 * more than one item. Ends with the signal.
 */
export async function* mergeStreams<Item>(
  streams: readonly Open<Item>[],
  signal: AbortSignal,
): AsyncGenerator<Item, void> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const handOver = new HandOver<Item>();
  stop.addEventListener('abort', () => handOver.close());
  const reading = Promise.all(streams.map(async (open) => await readAgain(open, handOver, stop)));
  reading.catch((error: unknown) => handOver.fail(error));
  try {
    for (let item = await handOver.take(); item !== undefined; item = await handOver.take()) yield item.value;
  } finally {
    over.abort();
    await reading.catch(() => undefined);
  }
}

async function readAgain<Item>(open: Open<Item>, handOver: HandOver<Item>, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      for await (const item of open(stop)) await handOver.put(item);
    } catch (error) {
      if (!stop.aborted && !PlatformError.is(error, 'orchestrator_unreachable')) throw error;
    }
    await delay(RETRY_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Passes items from several writers to one reader; a writer waits until its item was taken. */
class HandOver<Item> {
  readonly #offers: { readonly value: Item; readonly taken: () => void }[] = [];
  #wake = Promise.withResolvers<void>();
  #isClosed = false;
  #failure: { readonly error: unknown } | undefined;

  async put(value: Item): Promise<void> {
    if (this.#isClosed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#offers.push({ value, taken: resolve });
    this.#wake.resolve();
    await promise;
  }

  /** @returns undefined when it is closed */
  async take(): Promise<{ readonly value: Item } | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#isClosed) return undefined;
      const offer = this.#offers.shift();
      if (offer !== undefined) {
        offer.taken();
        return offer;
      }
      await this.#wake.promise;
      this.#wake = Promise.withResolvers();
    }
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.close();
  }

  close(): void {
    this.#isClosed = true;
    for (const { taken } of this.#offers.splice(0)) taken();
    this.#wake.resolve();
  }
}
