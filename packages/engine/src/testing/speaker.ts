import { fileURLToPath } from 'node:url';
import { command, inNamespace } from './command.ts';

/** A connection, and what is said over it first. */
export interface Speech {
  /** TLS with a request in it, a plain request, or a line that is neither. */
  readonly kind: 'tls' | 'http' | 'line';
  readonly address: string;
  readonly port: number;
  /** In the greeting of TLS; null: it names nobody. */
  readonly serverName: string | null;
  /** Of the request; null: it names nobody. */
  readonly host: string | null;
  /** Method and path. */
  readonly request: string;
}

/** `read`: it was answered, and whoever spoke TLS was not the server itself. */
export type Heard = 'closed' | 'carried' | 'read';

const MAIN = fileURLToPath(new URL('speaker-main.ts', import.meta.url));

/** Says everything at once in the network namespace at `path`, after it has asked for the names. `certificate`: who signs for the servers. */
export async function speak(
  path: string,
  order: {
    readonly nameserver: string;
    readonly names: readonly string[];
    readonly speeches: readonly Speech[];
    readonly certificate: string;
    /** For how long silence is no answer. */
    readonly patienceMs: number;
  },
): Promise<readonly Heard[]> {
  const [program, ...parameters] = inNamespace(path, process.execPath, MAIN, JSON.stringify(order));
  return JSON.parse(await command(program, ...parameters)) as Heard[];
}
