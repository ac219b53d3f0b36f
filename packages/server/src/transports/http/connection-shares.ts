import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How far a connection has got. Those that have got less far make room first. */
type Stage =
  /** Nothing has come yet that could be answered. */
  | 'silent'
  /** Between two requests. */
  | 'idle'
  /** A request whose body has not come whole. */
  | 'arriving'
  /** A request is being answered, or the connection has become a stream. */
  | 'served';

const GIVEN_UP: readonly Stage[] = ['silent', 'idle', 'arriving'];

interface Connection {
  readonly socket: Socket;
  /** Whose share it counts against. */
  group: string;
  stage: Stage;
}

const CLAIM = 'svc claim';

/** From now on the connection counts for whoever was found behind it, no more for its address; null: the operator. */
export function claimConnection(socket: Duplex, owner: string | null): void {
  socket.emit(CLAIM, owner);
}

/** One customer of a provider has a whole /64 of IPv6, one of IPv4 an address. */
export function groupOfAddress(address = ''): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? [];
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  const words = [...first, ...Array.from({ length: zeros }, () => '0'), ...last];
  return `${words
    .slice(0, 4)
    .map((word) => Number.parseInt(word, 16).toString(16))
    .join(':')}::/64`;
}

/**
 * Shares connections between client addresses before anybody has shown a key, and between organizations afterwards. While there are enough everybody has as many as they like.
 * A new one that finds all of them taken gets the place of the address with the most: of its longest silent connection, else of one
 * that waits for its next request, else of one whose request does not get on. Requests that are being answered keep theirs.
 */
export class ConnectionShares {
  readonly #maxConnections: number;
  readonly #connections = new Map<Socket, Connection>();
  /** By address or owner, oldest first. */
  readonly #byGroup = new Map<string, Map<Socket, Connection>>();

  constructor(server: Server, maxConnections: number) {
    this.#maxConnections = maxConnections;
    server.on('connection', (socket) => this.#admit(socket));
    server.on('request', (request, response) => this.#follow(request, response));
    server.on('upgrade', (request) => this.#move(request.socket, 'served'));
  }

  /** When no more are taken: a browser and our own SDK open connections before they need them, and an end would wait for their requests. */
  dropSilent(): void {
    for (const { socket, stage } of this.#connections.values()) if (stage === 'silent') socket.destroy();
  }

  #admit(socket: Socket): void {
    if (this.#connections.size >= this.#maxConnections && !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const connection: Connection = {
      socket,
      group: `address ${groupOfAddress(socket.remoteAddress)}`,
      stage: 'silent',
    };
    this.#connections.set(socket, connection);
    this.#join(connection);
    socket.on(CLAIM, (owner: string | null) => {
      if (!this.#connections.has(socket)) return;
      this.#leave(connection);
      connection.group = `owner ${owner ?? ''}`;
      this.#join(connection);
    });
    socket.once('close', () => this.#forget(connection));
  }

  #join(connection: Connection): void {
    const own = this.#byGroup.get(connection.group) ?? new Map<Socket, Connection>();
    this.#byGroup.set(connection.group, own.set(connection.socket, connection));
  }

  #leave({ group, socket }: Connection): void {
    const own = this.#byGroup.get(group);
    own?.delete(socket);
    if (own?.size === 0) this.#byGroup.delete(group);
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection.socket);
    this.#leave(connection);
  }

  #makeRoom(): boolean {
    const byShare = [...this.#byGroup.values()].toSorted((a, b) => b.size - a.size);
    for (const connections of byShare) {
      for (const stage of GIVEN_UP) {
        const found = connections.values().find((connection) => connection.stage === stage);
        if (found === undefined) continue;
        found.socket.destroy();
        // At once, not when its end is told: several may come in one turn.
        this.#forget(found);
        return true;
      }
    }
    return false;
  }

  #follow(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#move(socket, request.complete ? 'served' : 'arriving');
    const onWhole = () => this.#move(socket, 'served');
    request.once('end', onWhole);
    response.once('close', () => {
      // The end of a request that nobody read comes after its answer, and would have the connection served for ever.
      request.off('end', onWhole);
      this.#move(socket, 'idle');
    });
  }

  #move(socket: Socket, stage: Stage): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined) connection.stage = stage;
  }
}
