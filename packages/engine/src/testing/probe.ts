import { fileURLToPath } from 'node:url';
import { command, inNamespace } from './command.ts';

/** A connection or query to try from inside a sandbox. */
export type Attempt =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  /** Opens that many connections at once and keeps them; reports how many were answered, a moment after the expected number was. */
  | {
      readonly kind: 'tcpMany';
      readonly host: string;
      readonly port: number;
      readonly count: number;
      readonly awaited: number;
    }
  /** Sends that many queries from one socket, thousands per second; reports how many were answered, and in how many milliseconds. */
  | { readonly kind: 'dnsFlood'; readonly server: string; readonly count: number }
  /** Sends the first packet of each and waits for no answer; ends when all were sent. */
  | {
      readonly kind: 'knock';
      readonly flows: readonly {
        readonly address: string;
        readonly protocol: 'tcp' | 'udp';
        readonly port: number;
      }[];
    }
  | {
      readonly kind: 'udp';
      readonly host: string;
      readonly port: number;
      readonly text: string;
      readonly from?: string;
    }
  | {
      readonly kind: 'dns';
      readonly server: string;
      readonly name: string;
      readonly transport: 'udp' | 'tcp';
      /** Default 53. */
      readonly port?: number;
      /** Default 1, an IPv4 address. */
      readonly type?: number;
    };

const MAIN = fileURLToPath(new URL('probe-main.ts', import.meta.url));

/** Timeout for packets that are answered, also on a busy machine. */
const TIMEOUT_MS = 20_000;
/** Timeout for packets that are dropped: long enough to cross this machine, short enough for a test full of them. */
const BRIEF_MS = 1500;
/** No answer yet; or the resolver in between timed out. */
const UNANSWERED = /^(silence|rcode 2)$/;

/** Tries everything at once in the network namespace at `path`; one outcome each, as text. Tries without an answer are repeated. */
export async function probe(path: string, ...attempts: readonly Attempt[]): Promise<readonly string[]> {
  let outcomes = await tryAll(path, attempts, TIMEOUT_MS);
  for (let times = 0; times < 2 && outcomes.some((outcome) => UNANSWERED.test(outcome)); times++)
    outcomes = await tryAll(path, attempts, TIMEOUT_MS);
  return outcomes;
}

/** The same for tries that must not be answered. */
export async function probeBriefly(
  path: string,
  ...attempts: readonly Attempt[]
): Promise<readonly string[]> {
  return await tryAll(path, attempts, BRIEF_MS);
}

async function tryAll(
  path: string,
  attempts: readonly Attempt[],
  patienceMs: number,
): Promise<readonly string[]> {
  const line = [process.execPath, MAIN, JSON.stringify(attempts), String(patienceMs)];
  const [program, ...parameters] = inNamespace(path, ...line);
  return JSON.parse(await command(program, ...parameters)) as string[];
}
