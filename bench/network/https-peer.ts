/**
 * A server of HTTPS for bench/network.ts, in a network namespace: says "hello" to every request, and to `/bulk/N` sends N MiB. Prints
 * who signs for it as one line of JSON.
 */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { Readable } from 'node:stream';
import { writeLeaf } from '../../packages/engine/src/egress/tls/certificate.ts';
import { makeAuthority, readIssuer } from '../../packages/engine/src/egress/tls/installation-authority.ts';
import { zeros } from '../suite/measure.ts';

const HOUR_MS = 3_600_000;
const BLOCK = new Uint8Array(256 * 1024);
const [host = '', address = '', port = ''] = process.argv.slice(2);

const authority = makeAuthority();
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const validity = { from: new Date(Date.now() - HOUR_MS), until: new Date(Date.now() + HOUR_MS) };

const server: Server = createServer(
  {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: writeLeaf(host, privateKey, readIssuer(authority), validity),
  },
  (incoming, response) => {
    const mib = Number(/^\/bulk\/(\d+)$/.exec(incoming.url ?? '')?.[1] ?? 0);
    if (mib > 0) {
      response.setHeader('content-length', mib * 1024 * 1024);
      Readable.from(zeros(mib, BLOCK)).pipe(response);
    } else response.end('hello');
  },
);
server.keepAliveTimeout = 0;
server.listen(Number(port), address, () =>
  process.stdout.write(`${JSON.stringify({ certificate: authority.certificate })}\n`),
);
