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

/** By target, with what each of them is let go by. None of them keeps the program running. */
const waiting = new Map<string, Map<SocketChunks, () => void>>();

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
  const drop = (): void => void socket.destroy();
  const unused = setTimeout(drop, UNUSED_MS).unref();
  const letGo = (): void => {
    clearTimeout(unused);
    socket.off('end', drop);
    socket.off('close', letGo);
    those.delete(chunks);
  };
  socket.unref();
  socket.on('end', drop);
  socket.on('close', letGo);
  those.set(chunks, letGo);
}

/** One that was opened before. The caller owns it. */
export function takeDialled(target: Target): SocketChunks | undefined {
  const those = waitingFor(target);
  for (const [chunks, letGo] of those) {
    letGo();
    if (chunks.socket.destroyed) continue;
    chunks.socket.ref();
    return chunks;
  }
  return undefined;
}

function waitingFor({ isSecure, host, port }: Target): Map<SocketChunks, () => void> {
  const key = `${isSecure} ${host} ${port}`;
  const known = waiting.get(key);
  if (known !== undefined) return known;
  const made = new Map<SocketChunks, () => void>();
  waiting.set(key, made);
  return made;
}
