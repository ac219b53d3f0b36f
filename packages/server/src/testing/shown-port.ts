import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { createApiKey } from '../store/api-keys-and-tokens.ts';
import { ensureOrganization } from '../store/organizations.ts';
import { startTestServer, type TestServer, type TestServerOptions } from './test-server.ts';

export const DOMAIN = 'preview.test';

interface Shown {
  readonly server: TestServer;
  /** For a server that requires a key. */
  readonly key?: string;
  /** The service in the sandbox. */
  readonly service: Server;
  readonly port: number;
  readonly sandboxId: string;
  readonly host: string;
  readonly preview: { readonly id: string; readonly url: string; readonly token: string };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** A sandbox with a service, and a preview token for it. */
export async function show(
  t: TestContext,
  answer: RequestListener,
  more: TestServerOptions = {},
): Promise<Shown> {
  const service = createServer(answer);
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  t.after(() => {
    service.closeAllConnections();
    service.close();
  });
  const { port } = service.address() as AddressInfo;
  const server = await startTestServer(t, {
    previews: { domain: DOMAIN, scheme: 'http', port: null },
    ...more,
  });
  const key = more.signingKey === undefined ? {} : { key: await makeKey(server) };
  const created = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    ...key,
    body: { name: 'app', slug: 'my-app', image: { type: 'oci', reference: 'python' } },
  });
  assert.equal(created.body.status, 'running', JSON.stringify(created.body));
  const sandboxId: string = created.body.id;
  const { status, body } = await server.rest('POST', `/sandboxes/${sandboxId}/previews`, {
    ...key,
    body: { port },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return { ...key, server, service, port, sandboxId, host: `${port}-my-app.${DOMAIN}`, preview: body };
}

async function makeKey({ database }: TestServer): Promise<string> {
  const organizationId = await ensureOrganization(database, 'acme');
  const credential = { name: 'k', createdBy: null, expiresAt: null };
  return (await createApiKey(database, organizationId, credential)).secret;
}

export async function ask(
  server: TestServer,
  path: string,
  options: {
    readonly host: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly method?: string;
    readonly body?: string;
  },
): Promise<Answer> {
  const { host, headers = {}, method = 'GET', body } = options;
  const asked = request(`${server.url}${path}`, { method, headers: { host, ...headers }, agent: false });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const text = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}
