import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { request as startRequest } from '@svc/contract/node-http';
import { headersForBrowser, headersForSandbox } from './forward-headers.ts';
import { brokeOff, sendAnswer } from './preview-answer.ts';
import { withoutToken } from './preview-token.ts';

const MAX_HEADER_BYTES = 64 * 1024;

export interface Forwarded {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** To the service in the sandbox. */
  readonly socket: Duplex;
  readonly port: number;
  readonly scheme: string;
}

/** Sends a request to a sandbox and its answer back, both as they come. Neither is read faster than it is taken. */
export async function forwardRequest(parts: Forwarded & { readonly cookie: string | null }): Promise<void> {
  const { request, response, socket, port, cookie } = parts;
  const outgoing = askSandbox(parts, false);
  const leave = () => socket.destroy();
  response.once('close', leave);
  try {
    const sent = pipeline(request, outgoing).catch(() => undefined);
    const answer = await answerOf(outgoing);
    const headers = headersForBrowser(answer);
    if (cookie !== null) headers.push('set-cookie', cookie);
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', headers);
    response.flushHeaders();
    await pipeline(answer, response);
    // A service may answer before it has read everything, and then nobody needs the rest.
    if (!request.complete) request.socket.destroySoon();
    else await sent;
  } catch {
    // Of the client or of the service; whoever is still there is told.
    sendAnswer(request, response, brokeOff(port));
  } finally {
    response.off('close', leave);
    socket.destroy();
  }
}

/** The request as the sandbox gets it; its body is still to be sent. */
export function askSandbox({ request, socket, scheme }: Forwarded, isUpgrade: boolean): ClientRequest {
  const outgoing = startRequest({
    // Never asked for a name: the connection stands already.
    createConnection: () => socket,
    method: request.method ?? 'GET',
    path: withoutToken(request.url ?? '/'),
    headers: headersForSandbox(request, { scheme, isUpgrade }),
    maxHeaderSize: MAX_HEADER_BYTES,
    setDefaultHeaders: false,
  });
  outgoing.on('error', () => socket.destroy());
  return outgoing;
}

async function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return answer;
}
