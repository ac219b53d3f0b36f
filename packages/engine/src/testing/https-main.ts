/**
 * An HTTPS server for a network namespace that has a certificate for every name, on port 443, over HTTP/2 where the name begins with
 * h2. It prints the certificate of its authority, and then every request as two lines of JSON: the name of the connection and its first
 * bytes, and at its end everything that was sent. Ports 80 and 8081 answer in the same way over plain HTTP, as the host that each request
 * names. Datagrams on UDP port 443 are printed too. With a folder and a password as arguments it is a mirror.
 */
import { generateKeyPairSync } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { writeLeaf } from '../egress/tls/certificate.ts';
import { makeAuthority, readIssuer } from '../egress/tls/installation-authority.ts';
import { serveMirror } from './serve-mirror.ts';

const [folder, password = ''] = process.argv.slice(2);
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

async function answer(incoming: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const { servername: name = incoming.headers.host?.replace(/:\d+$/, '') } =
    incoming.socket as Partial<TLSSocket>;
  print({ name, begun: `${incoming.method} ${incoming.url}` });
  const body = await buffer(incoming).catch(() => Buffer.alloc(0));
  const { method, url, rawHeaders, rawTrailers } = incoming;
  print({ name, said: [method, url, ...rawHeaders, body.toString('latin1'), ...rawTrailers].join(' ') });
  if (folder !== undefined) await serveMirror({ folder, password }, incoming, body, response);
  else if (url.startsWith('/elsewhere'))
    response.writeHead(302, { location: 'https://evil.public.example/stolen' }).end();
  else response.end(`hello from ${String(name)}\n`);
}

const server = createSecureServer(
  {
    allowHTTP1: true,
    ALPNCallback: ({ servername }) => (servername.startsWith('h2') ? 'h2' : 'http/1.1'),
    ...leafFor('default.test'),
    SNICallback: (name, done) => done(null, createSecureContext(leafFor(name))),
  },
  (incoming, response) => void answer(incoming, response),
);
server.on('tlsClientError', () => undefined);
server.listen(443, '0.0.0.0');
await once(server, 'listening');
for (const port of [80, 8081]) {
  const plain = createHttpServer((incoming, response) => {
    // Both versions of HTTP speak in the words that are used here.
    void answer(incoming as unknown as Http2ServerRequest, response as unknown as Http2ServerResponse);
  });
  plain.listen(port, '0.0.0.0');
  await once(plain, 'listening');
}
const datagrams = createSocket('udp4');
datagrams.on('message', (message) => print({ datagram: message.toString('latin1') }));
datagrams.bind(443);
await once(datagrams, 'listening');
print({ certificate: authority.certificate });
