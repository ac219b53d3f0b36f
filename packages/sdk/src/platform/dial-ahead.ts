import { SocketChunks } from './socket-chunks.ts';

/** The address of a connection. */
export interface Target {
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
}

/** A program that creates many sandboxes at once opens few connections ahead and the rest when they are needed. */
const MOST_WAITING = 4;
const UNUSED_MS = 3000;
const DEFAULT_PORT: Readonly<Record<string, number>> = { 'ws:': 80, 'http:': 80, 'wss:': 443, 'https:': 443 };

/** The connections by target, each with the function that releases it. They do not keep the program running. */
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
 * Opens a connection for the next channel to this server, while a sandbox is being created. An unused one is closed after a while.
 * A failure is ignored: the channel then opens its own connection and reports the error.
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

/** A connection that was opened ahead, if any. The caller owns it. */
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
