import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { promisify } from 'node:util';

/** A proxy with TLS for a name and all below it, as operators put one before a server. */
export class TlsFront {
  readonly folder: string;
  readonly #server: Server;
  /** The server behind it; set once it listens. */
  target = '';

  private constructor(folder: string, server: Server) {
    this.folder = folder;
    this.#server = server;
    server.on('request', (incoming, outgoing) => {
      const { method, headers, url } = incoming;
      const behind = request(`${this.target}${url}`, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        // So that a stream is seen before its first byte.
        outgoing.flushHeaders();
        pipeline(answer, outgoing, () => undefined);
      });
      behind.on('error', () => outgoing.destroy());
      pipeline(incoming, behind, () => undefined);
      outgoing.on('close', () => behind.destroy());
    });
  }

  static async start(domain: string): Promise<TlsFront> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-e2b-tls-'));
    await makeCertificates(folder, domain);
    const [key, cert] = await Promise.all(
      ['leaf.key', 'leaf.pem'].map((name) => readFile(join(folder, name))),
    );
    const server = createServer({ key, cert, ALPNProtocols: ['http/1.1'] });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TlsFront(folder, server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The certificate that clients have to trust. */
  get authority(): string {
    return join(this.folder, 'ca.pem');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function makeCertificates(folder: string, domain: string): Promise<void> {
  const openssl = async (...words: readonly string[]) =>
    await promisify(execFile)('openssl', words, { cwd: folder });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await openssl(
    'req',
    '-x509',
    ...curve,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=test authority',
  );
  await openssl('req', ...curve, '-keyout', 'leaf.key', '-out', 'leaf.csr', '-subj', `/CN=${domain}`);
  await writeFile(join(folder, 'names'), `subjectAltName=DNS:${domain},DNS:*.${domain}\n`);
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  await openssl('x509', '-req', '-in', 'leaf.csr', '-out', 'leaf.pem', ...signing);
}
