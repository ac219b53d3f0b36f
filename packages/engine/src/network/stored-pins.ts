import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Pin } from '../egress/egress-messages.ts';
import { formatAddress, parseAddress, type Address } from '../policy/address.ts';

interface Known {
  readonly name: string;
  readonly address: Address;
  /** Wall-clock time, because it continues while no engine runs. */
  readonly expiresAt: number;
}

/** A line of the file: a sandbox resolved a name, or is gone. */
type Line = { readonly client: string } & (
  | { readonly name: string; readonly address: string; readonly expiresAt: number }
  | { readonly gone: true }
);

const MAX_PINS_PER_CLIENT = 4096;
/** The file is compacted when it has this many lines more than there are pins. */
const MAX_SPARE_LINES = 8192;

/**
 * Keeps the addresses that sandboxes have resolved, across restarts of the resolver, the proxies and the engine: programs use an
 * address until its TTL ends. A pin that cannot be written is lost when the engine ends, not earlier.
 */
export class StoredPins {
  readonly #file: string;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #known = new Map<string, Map<string, Known>>();
  #lines = 0;

  constructor(file: string, logger: Pick<Logger, 'warn'>) {
    this.#file = file;
    this.#logger = logger;
  }

  /** Reads the file of an earlier engine, for these sandboxes alone: a new sandbox may have the address of one that is gone. */
  load(clients: ReadonlySet<string>): void {
    this.#known.clear();
    for (const line of readLines(this.#file)) {
      if ('gone' in line) this.#known.delete(line.client);
      else if (clients.has(line.client)) this.#take(line);
    }
    this.#rewrite();
  }

  keep(client: string, pins: readonly Pin[]): void {
    const lines = pins.map(({ name, address, seconds }) => ({
      client,
      name,
      address: formatAddress(address),
      expiresAt: Date.now() + seconds * 1000,
    }));
    for (const line of lines) this.#take(line);
    this.#append(lines);
  }

  forget(client: string): void {
    if (this.#known.delete(client)) this.#append([{ client, gone: true }]);
  }

  /** The pins of each sandbox that have not expired. */
  byAddress(): ReadonlyMap<string, readonly Pin[]> {
    return new Map([...this.#known.keys()].map((client) => [client, this.of(client)]));
  }

  of(client: string): readonly Pin[] {
    const now = Date.now();
    const known = this.#known.get(client) ?? new Map<string, Known>();
    for (const [key, { expiresAt }] of known) if (expiresAt <= now) known.delete(key);
    return [...known.values()].map(({ name, address, expiresAt }) => ({
      name,
      address,
      seconds: Math.ceil((expiresAt - now) / 1000),
    }));
  }

  #take({ client, name, address, expiresAt }: Exclude<Line, { gone: true }>): void {
    const parsed = parseAddress(address);
    if (parsed === null) return;
    const known = this.#known.get(client) ?? new Map<string, Known>();
    this.#known.set(client, known);
    const key = `${name} ${address}`;
    // Moved to the end: the oldest are evicted first.
    known.delete(key);
    known.set(key, { name, address: parsed, expiresAt });
    const [oldest] = known.keys();
    if (known.size > MAX_PINS_PER_CLIENT && oldest !== undefined) known.delete(oldest);
  }

  #append(lines: readonly Line[]): void {
    this.#lines += lines.length;
    const pins = [...this.#known.values()].reduce((sum, { size }) => sum + size, 0);
    if (this.#lines > pins + MAX_SPARE_LINES) this.#rewrite();
    else this.#attempt(() => appendFileSync(this.#file, textOf(lines), { mode: 0o600 }));
  }

  #rewrite(): void {
    const lines = [...this.#known.keys()].flatMap((client) =>
      this.of(client).map(({ name, address, seconds }) => ({
        client,
        name,
        address: formatAddress(address),
        expiresAt: Date.now() + seconds * 1000,
      })),
    );
    this.#lines = lines.length;
    this.#attempt(() => {
      writeFileSync(`${this.#file}.new`, textOf(lines), { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    });
  }

  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#logger.warn(
        { error },
        'Resolved addresses of sandboxes could not be stored and will not outlive this engine',
      );
    }
  }
}

function textOf(lines: readonly Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

function readLines(file: string): readonly Line[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((text) => {
        try {
          return text === '' ? [] : [JSON.parse(text) as Line]; // Only engines write this file.
        } catch {
          return []; // Truncated by a kill.
        }
      });
  } catch {
    return []; // The first engine of this folder has no file.
  }
}
