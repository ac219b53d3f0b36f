import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { isIP } from 'node:net';

export interface Resolver {
  readonly address: string;
  readonly port: number;
}

/** The resolvers to ask: a fixed list, or those of this host, read again when their file changes. */
export interface Resolvers {
  current(): readonly Resolver[];
  close(): void;
}

const DNS_PORT = 53;
const MAX_RESOLVERS = 3;
const POLL_INTERVAL_MS = 2000;

export function fixedResolvers(resolvers: readonly Resolver[]): Resolvers {
  return { current: () => resolvers, close: () => undefined };
}

/** Polled, because the file is replaced by renaming and is often a link into another folder. */
export function hostResolvers(path: string): Resolvers {
  let resolvers = readResolvers(path);
  const reread = () => {
    resolvers = readResolvers(path);
  };
  watchFile(path, { interval: POLL_INTERVAL_MS, persistent: false }, reread);
  return { current: () => resolvers, close: () => unwatchFile(path, reread) };
}

/** As in resolv.conf(5): at most three, and the local host when there are none. */
export function parseResolvConf(text: string): readonly Resolver[] {
  const addresses = text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((address) => isIP(address) !== 0);
  const chosen = addresses.length === 0 ? ['127.0.0.1'] : addresses.slice(0, MAX_RESOLVERS);
  return chosen.map((address) => ({ address, port: DNS_PORT }));
}

function readResolvers(path: string): readonly Resolver[] {
  try {
    return parseResolvConf(readFileSync(path, 'utf8'));
  } catch {
    // Other resolver libraries treat a missing or unreadable file as empty, too.
    return parseResolvConf('');
  }
}
