/**
 * Listens in a network namespace on every address and port given as arguments (addresses, `--`, ports), as a server for any host, and
 * sends each caller its first line back: over TLS with a certificate for the server name, or for its own address, and otherwise in
 * plain text. Prints its authority.
 */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls';
import { writeLeaf } from '../egress/tls/certificate.ts';
import { makeAuthority, readIssuer } from '../egress/tls/installation-authority.ts';

const HANDSHAKE = 0x16;
const HOUR_MS = 3_600_000;
const words = process.argv.slice(2);
const addresses = words.slice(0, words.indexOf('--'));
const ports = words.slice(words.indexOf('--') + 1).map(Number);
const authority = makeAuthority();
const issuer = readIssuer(authority);
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
const validity = { from: new Date(Date.now() - HOUR_MS), until: new Date(Date.now() + HOUR_MS) };
const contextFor = (host: string) =>
  createSecureContext({ key, cert: writeLeaf(host, privateKey, issuer, validity) });

/** The first line of the input as an HTTP response. */
function repeat(socket: Duplex, first = ''): void {
  let heard = first;
  const answer = () => {
    const isWhole = /^\S+ \S+ HTTP/.test(heard) ? heard.includes('\r\n\r\n') : heard.includes('\n');
    if (!isWhole) return;
    const body = `heard ${heard.split('\r\n')[0]}`;
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
  };
  socket
    .on('error', () => undefined)
    .on('data', (data: Buffer) => {
      heard += data.toString('latin1');
      answer();
    });
  answer();
}

function serve(socket: Socket, address: string): void {
  socket
    .on('error', () => undefined)
    .once('readable', () => {
      const first = socket.read() as Buffer | null;
      if (first === null) return;
      if (first[0] !== HANDSHAKE) return repeat(socket, first.toString('latin1'));
      socket.unshift(first);
      const SNICallback = (name: string, done: (error: null, context: SecureContext) => void) =>
        done(null, contextFor(name));
      repeat(new TLSSocket(socket, { isServer: true, secureContext: contextFor(address), SNICallback }));
    });
}

for (const address of addresses)
  for (const port of ports) {
    const server = createServer((socket) => serve(socket, address)).listen(port, address);
    await once(server, 'listening');
  }
process.stdout.write(`${JSON.stringify(authority.certificate)}\n`);
