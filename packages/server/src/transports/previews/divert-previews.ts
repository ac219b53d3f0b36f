import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Previews } from './previews.ts';

/**
 * Routes requests to hosts of previews before any other handler of the server. Call it after all listeners were
 * added.
 * @param isOtherHost hosts of the same form that other handlers answer
 */
export function divertPreviews(
  server: Server,
  previews: Previews,
  isOtherHost: (host: string | undefined) => boolean,
): void {
  const takes = (request: IncomingMessage) => !isOtherHost(request.headers.host) && previews.takes(request);
  const answer = server.listeners('request');
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (takes(request)) void previews.answer(request, response);
    else for (const listener of answer) listener.call(server, request, response);
  });
  const upgrade = server.listeners('upgrade');
  server.removeAllListeners('upgrade');
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (takes(request)) void previews.upgrade(request, socket, head);
    else for (const listener of upgrade) listener.call(server, request, socket, head);
  });
}
