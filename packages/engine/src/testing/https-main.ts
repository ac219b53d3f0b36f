/**
 * A server of HTTPS in a network namespace that is whoever it is asked for, on port 443. It prints who signs for it, and then every
 * request as a line of JSON: the name of the connection, and everything that was said.
 */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { writeLeaf } from '../egress/tls/certificate.ts';
import { makeAuthority, readIssuer } from '../egress/tls/installation-authority.ts';

const HOUR_MS = 3_600_000;
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const authority = makeAuthority();
const issuer = readIssuer(authority);
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const validity = { from: new Date(Date.now() - HOUR_MS), until: new Date(Date.now() + HOUR_MS) };
const leafFor = (host: string) => ({
  key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  cert: writeLeaf(host, privateKey, issuer, validity),
});

async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = (incoming.socket as TLSSocket).servername;
  const body = await buffer(incoming).catch(() => Buffer.alloc(0));
  const { method, url, rawHeaders } = incoming;
  print({ name, said: [method, url, ...rawHeaders, body.toString('latin1')].join(' ') });
  if (url?.startsWith('/elsewhere') === true)
    response.writeHead(302, { location: 'https://evil.public.example/stolen' }).end();
  else response.end(`hello from ${String(name)}\n`);
}

const server = createServer(
  {
    ...leafFor('nobody.test'),
    SNICallback: (name, done) => done(null, createSecureContext(leafFor(name))),
  },
  (incoming, response) => void answer(incoming, response),
);
server.on('tlsClientError', () => undefined);
server.listen(443, '0.0.0.0');
await once(server, 'listening');
print({ certificate: authority.certificate });
