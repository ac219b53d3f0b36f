import type { Logger } from 'pino';

/** Long enough for the start that took one to be over: nobody should wait for what is made for the next. */
const PAUSE_MS = 60;

export interface ReadyDisksOptions {
  /** How many are kept. */
  readonly target: number;
  /** Makes one and returns its name. Leaves nothing when it fails. */
  readonly make: () => Promise<string>;
  readonly remove: (name: string) => Promise<void>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Keeps a few empty disks mounted, for starts that would wait for one. None is made while they are taken all the time. */
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

  /** Its name; undefined when there is none. */
  take(): string | undefined {
    this.#fillSoon();
    return this.#ready.shift();
  }

  /** Removes those that nobody took. Never rejects. */
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
      // Tried again when somebody asks for one, who makes their own.
      this.#options.logger.warn({ error }, 'A disk could not be made ready');
    } finally {
      this.#making = undefined;
    }
  }

  async #discard(name: string): Promise<void> {
    try {
      await this.#options.remove(name);
    } catch (error) {
      // Found and removed by the next `recover`.
      this.#options.logger.warn({ error, disk: name }, 'A disk that was ready could not be removed');
    }
  }
}
