import type { Logger } from 'pino';

/** The delay before a new disk is made, so that it does not slow down the start that took the last one. */
const PAUSE_MS = 60;

export interface ReadyDisksOptions {
  /** The number of disks to keep. */
  readonly target: number;
  /** Makes a disk and returns its name. Leaves nothing when it fails. */
  readonly make: () => Promise<string>;
  readonly remove: (name: string) => Promise<void>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Keeps a few empty disks mounted, so that starts need not wait for one. None is made while disks are taken continuously. */
export class ReadyDisks {
  readonly #options: ReadyDisksOptions;
  readonly #ready: string[] = [];
  #making: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;

  constructor(options: ReadyDisksOptions) {
    this.#options = options;
  }

  open(): void {
    this.#isOpen = true;
    this.#fillSoon();
  }

  /** Takes a disk; undefined when there is none. */
  take(): string | undefined {
    this.#fillSoon();
    return this.#ready.shift();
  }

  /** Removes the unused disks. Never rejects. */
  async close(): Promise<void> {
    this.#isOpen = false;
    clearTimeout(this.#timer);
    await this.#making;
    await Promise.all(this.#ready.splice(0).map((name) => this.#discard(name)));
  }

  #fillSoon(): void {
    clearTimeout(this.#timer);
    const fill = () => void (this.#making ??= this.#fill());
    if (this.#isOpen) this.#timer = setTimeout(fill, PAUSE_MS).unref();
  }

  async #fill(): Promise<void> {
    try {
      while (this.#isOpen && this.#ready.length < this.#options.target)
        this.#ready.push(await this.#options.make());
    } catch (error) {
      // Retried at the next `take`, whose caller makes its own disk.
      this.#options.logger.warn({ error }, 'A disk could not be made ready');
    } finally {
      this.#making = undefined;
    }
  }

  async #discard(name: string): Promise<void> {
    try {
      await this.#options.remove(name);
    } catch (error) {
      // The next `recover` finds and removes it.
      this.#options.logger.warn({ error, disk: name }, 'A disk that was ready could not be removed');
    }
  }
}
