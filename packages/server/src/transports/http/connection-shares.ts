import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

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
  readonly address: string;
  stage: Stage;
}

/**
 * Shares connections between client addresses, before anybody has shown a key. While there are enough everybody has as many as they like.
 * A new one that finds all of them taken gets the place of the address with the most: of its longest silent connection, else of one
 * that waits for its next request, else of one whose request does not get on. Requests that are being answered keep theirs.
 */
export class ConnectionShares {
  readonly #maxConnections: number;
  /** By address, oldest first. */
  readonly #byAddress = new Map<string, Map<Socket, Connection>>();
  #count = 0;

  constructor(server: Server, maxConnections: number) {
    this.#maxConnections = maxConnections;
    server.on('connection', (socket) => this.#admit(socket));
    server.on('request', (request, response) => this.#follow(request, response));
    server.on('upgrade', (request) => this.#move(request.socket, 'served'));
  }

  #admit(socket: Socket): void {
    if (this.#count >= this.#maxConnections && !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const address = socket.remoteAddress ?? '';
    const own = this.#byAddress.get(address) ?? new Map<Socket, Connection>();
    this.#byAddress.set(address, own);
    own.set(socket, { socket, address, stage: 'silent' });
    this.#count += 1;
    socket.once('close', () => this.#forget(socket, address));
  }

  #forget(socket: Socket, address: string): void {
    const own = this.#byAddress.get(address);
    if (own?.delete(socket) !== true) return;
    this.#count -= 1;
    if (own.size === 0) this.#byAddress.delete(address);
  }

  #makeRoom(): boolean {
    const byShare = [...this.#byAddress].toSorted(([, a], [, b]) => b.size - a.size);
    for (const [address, connections] of byShare) {
      for (const stage of GIVEN_UP) {
        const found = connections.values().find((connection) => connection.stage === stage);
        if (found === undefined) continue;
        found.socket.destroy();
        // At once, not when its end is told: several may come in one turn.
        this.#forget(found.socket, address);
        return true;
      }
    }
    return false;
  }

  #follow(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#move(socket, request.complete ? 'served' : 'arriving');
    request.once('end', () => this.#move(socket, 'served'));
    response.once('close', () => this.#move(socket, 'idle'));
  }

  #move(socket: Socket, stage: Stage): void {
    const connection = this.#byAddress.get(socket.remoteAddress ?? '')?.get(socket);
    if (connection !== undefined) connection.stage = stage;
  }
}
