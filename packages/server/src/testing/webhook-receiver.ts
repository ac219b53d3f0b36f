import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export interface ReceivedHook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into messages in many ways, and name the fields they expect.
  readonly body: any;
}

export interface WebhookReceiver {
  readonly url: string;
  /** The received messages, in order. */
  readonly received: ReceivedHook[];
}

/** A receiver of webhooks, on loopback. */
export async function startReceiver(
  t: TestContext,
  answer: (hook: ReceivedHook, response: ServerResponse) => void = (_hook, response) => response.end('ok'),
): Promise<WebhookReceiver> {
  const received: ReceivedHook[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const hook = { path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) };
      received.push(hook);
      answer(hook, response);
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close().closeAllConnections());
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}

/** Computed as https://www.standardwebhooks.com describes it, without the server's code. */
export function signatureOf(secret: string, { headers, text }: ReceivedHook): string {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const content = [headers['webhook-id'], headers['webhook-timestamp'], text].join('.');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
