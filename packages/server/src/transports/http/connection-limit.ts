import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** State of a connection. Connections in earlier states are closed first when room is needed. */
type Stage =
  /** No complete request head has arrived yet. */
  | 'silent'
  /** Between two requests. */
  | 'idle'
  /** A request whose body is incomplete. */
  | 'arriving'
  /** A request is being answered, or the connection was upgraded to a stream. */
  | 'served';

const GIVEN_UP: readonly Stage[] = ['silent', 'idle', 'arriving'];

interface Connection {
  readonly socket: Socket;
  /** The group to whose share it counts. */
  group: string;
  stage: Stage;
}

const CLAIM = 'svc claim';

/** Counts the connection for its authenticated owner instead of its address from now on; null: the operator. */
export function claimConnection(socket: Duplex, owner: string | null): void {
  socket.emit(CLAIM, owner);
}

/** The group of an address: a customer of a provider has a whole /64 of IPv6, and one address of IPv4. */
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
 * Shares connections between client addresses before authentication, and between organizations afterwards. There is
 * no limit per group while connections are free. When all are taken, a new connection replaces one of the largest
 * group: its oldest silent connection, otherwise one between two requests, otherwise one with an incomplete request.
 * Connections whose request is being answered are never closed.
 */
export class ConnectionLimit {
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

  /**
   * Closes silent connections at shutdown: browsers and our own SDK open connections ahead of use, and the shutdown
   * would wait for their requests.
   */
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
        // Not in the close event: several connections may arrive in one turn of the event loop.
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
      // An unread request ends after its response; its end would mark the connection as served forever.
      request.off('end', onWhole);
      this.#move(socket, 'idle');
    });
  }

  #move(socket: Socket, stage: Stage): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined) connection.stage = stage;
  }
}
