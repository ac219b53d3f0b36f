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
  /** The connection to the service in the sandbox. */
  readonly socket: Duplex;
  readonly port: number;
  readonly scheme: string;
}

/** Forwards a request to a sandbox and its answer back, streamed with back-pressure. */
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
    // The service may answer before it has read the whole request; the rest is discarded.
    if (!request.complete) request.socket.destroySoon();
    else await sent;
  } catch {
    // Client or service broke off; tells the client, if it is still connected.
    sendAnswer(request, response, brokeOff(port));
  } finally {
    response.off('close', leave);
    socket.destroy();
  }
}

/** The request to the sandbox; its body is sent by the caller. */
export function askSandbox({ request, socket, scheme }: Forwarded, isUpgrade: boolean): ClientRequest {
  const outgoing = startRequest({
    // The connection exists already, so no name is resolved.
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
