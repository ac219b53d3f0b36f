import { fileURLToPath } from 'node:url';
import { command, inNamespace } from './command.ts';

/** A connection, and the first bytes to send over it. */
export interface Speech {
  /** TLS with a request in it, a plain request, or a line that is neither. */
  readonly kind: 'tls' | 'http' | 'line';
  readonly address: string;
  readonly port: number;
  /** SNI; null: none. */
  readonly serverName: string | null;
  /** Host of the request; null: none. */
  readonly host: string | null;
  /** Method and path. */
  readonly request: string;
}

/** `read`: it was answered, and the TLS peer was not the server itself. */
export type Heard = 'closed' | 'carried' | 'read';

const MAIN = fileURLToPath(new URL('speaker-main.ts', import.meta.url));

/** Opens all connections at once in the network namespace at `path`, after it has resolved the names. `certificate`: the servers' authority. */
export async function speak(
  path: string,
  order: {
    readonly nameserver: string;
    readonly names: readonly string[];
    readonly speeches: readonly Speech[];
    readonly certificate: string;
    /** After this silence there is no answer. */
    readonly patienceMs: number;
  },
): Promise<readonly Heard[]> {
  const [program, ...parameters] = inNamespace(path, process.execPath, MAIN, JSON.stringify(order));
  return JSON.parse(await command(program, ...parameters)) as Heard[];
}
