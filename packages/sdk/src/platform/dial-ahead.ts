import { SocketChunks } from './socket-chunks.ts';

/** Where a connection goes to. */
export interface Target {
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
}

/** For one that creates many at once: those that wait are few, the rest is opened when it is needed. */
const MOST_WAITING = 4;
const UNUSED_MS = 3000;
const DEFAULT_PORT: Readonly<Record<string, number>> = { 'ws:': 80, 'http:': 80, 'wss:': 443, 'https:': 443 };

/** By target. None of them keeps the program running. */
const waiting = new Map<string, Set<SocketChunks>>();

export function targetOf(url: URL): Target {
  return {
    isSecure: url.protocol === 'wss:' || url.protocol === 'https:',
    port: url.port === '' ? (DEFAULT_PORT[url.protocol] ?? 0) : Number(url.port),
    host: url.hostname.replace(/^\[|\]$/g, ''),
  };
}

export function connectTo({ isSecure, host, port }: Target): SocketChunks {
  return isSecure ? SocketChunks.connectSecurely(host, port) : SocketChunks.connect(host, port);
}

/**
 * Opens a connection that the next channel to this server takes: while a sandbox is being made there is time for that. It is closed when
 * nobody does, and a failure is nobody's: whoever needs one opens it then.
 */
export function dialAhead(serverUrl: string): void {
  const target = targetOf(new URL(serverUrl));
  const those = waitingFor(target);
  if (those.size >= MOST_WAITING) return;
  const chunks = connectTo(target);
  const { socket } = chunks;
  const unused = setTimeout(() => socket.destroy(), UNUSED_MS).unref();
  those.add(chunks);
  socket.unref();
  socket.once('end', () => socket.destroy());
  socket.once('close', () => {
    clearTimeout(unused);
    those.delete(chunks);
  });
}

/** One that was opened before. The caller owns it. */
export function takeDialled(target: Target): SocketChunks | undefined {
  const those = waitingFor(target);
  for (const chunks of those) {
    those.delete(chunks);
    if (chunks.socket.destroyed) continue;
    chunks.socket.ref();
    return chunks;
  }
  return undefined;
}

function waitingFor({ isSecure, host, port }: Target): Set<SocketChunks> {
  const key = `${isSecure} ${host} ${port}`;
  const known = waiting.get(key);
  if (known !== undefined) return known;
  const made = new Set<SocketChunks>();
  waiting.set(key, made);
  return made;
}
