import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { askSandbox, type Forwarded } from './forward-request.ts';
import { headersForBrowser } from './forward-headers.ts';
import { brokeOff, sendAnswer } from './preview-answer.ts';

/** Forwards a WebSocket: the sandbox answers the handshake, and the bytes after it are forwarded unread. */
export async function forwardUpgrade(
  parts: Forwarded & { readonly client: Duplex; readonly head: Buffer },
): Promise<void> {
  const { request, response, socket, port, client } = parts;
  const leave = () => socket.destroy();
  client.once('close', leave);
  try {
    const outgoing = askSandbox(parts, true);
    const upgraded = once(outgoing, 'upgrade') as Promise<[IncomingMessage, Duplex, Buffer]>;
    const refused = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    // Only one of the two promises settles.
    upgraded.catch(() => undefined);
    refused.catch(() => undefined);
    outgoing.end();
    const [answer, , head] = await Promise.race([upgraded, refused]);
    if (head === undefined) {
      response.writeHead(answer.statusCode ?? 502, headersForBrowser(answer));
      await pipeline(answer, response);
      return;
    }
    response.detachSocket(client as Parameters<typeof response.detachSocket>[0]);
    client.write(handshakeOf(answer));
    client.write(head);
    socket.write(parts.head);
    await Promise.all([pipeline(client, socket), pipeline(socket, client)]);
  } catch {
    // Client or service broke off; tells the client, if it is still connected.
    if (response.socket !== null) sendAnswer(request, response, brokeOff(port));
  } finally {
    client.off('close', leave);
    socket.destroy();
    if (response.socket === null) client.destroy();
  }
}

function handshakeOf(answer: IncomingMessage): string {
  const headers = ['connection', 'Upgrade', 'upgrade', 'websocket', ...headersForBrowser(answer)];
  const lines: string[] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    // SAFETY: names and values passed Node's parser, so they contain no line break.
    lines.push(`${headers[index]}: ${headers[index + 1]}\r\n`);
  }
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`;
}
