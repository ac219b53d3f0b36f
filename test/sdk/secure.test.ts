import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { promisify } from 'node:util';
import { ChannelClient } from '@svc/contract';
import { SvcError } from '@svc/sdk';
import { dialNode } from '../../packages/sdk/src/platform/node-dial.ts';
import { startChannelServer } from '../../packages/server/src/testing/channel-server.ts';

async function makeCertificate(t: TestContext): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-sdk-tls-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert];
  await promisify(execFile)('openssl', [...request.split(' '), ...names]);
  return { key: await readFile(key), cert: await readFile(cert) };
}

/** A proxy that takes the encryption off, as they stand before servers. */
async function startProxy(
  t: TestContext,
  certificate: { readonly key: Buffer; readonly cert: Buffer },
  target: string,
  asked: (string | false | null)[] = [],
): Promise<number> {
  const { hostname, port } = new URL(target);
  const proxy = createServer(certificate, (client) => {
    asked.push(client.servername);
    const upstream = connect(Number(port), hostname);
    client.pipe(upstream).pipe(client);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => void proxy.close());
  return (proxy.address() as AddressInfo).port;
}

test('a channel is encrypted for a server whose certificate is known, and refused to any other', async (t) => {
  const server = await startChannelServer(t);
  const { url, sandboxId, key } = await server.addSandbox();
  const certificate = await makeCertificate(t);
  const asked: (string | false | null)[] = [];
  const port = await startProxy(t, certificate, url, asked);
  const request = {
    url: `wss://localhost:${port}/v1/sandboxes/${sandboxId}/agent`,
    apiKey: key,
    signal: AbortSignal.timeout(100_000),
    describeRefusal: () => Promise.resolve(null),
  };
  await assert.rejects(dialNode(request), (error) => {
    assert.ok(SvcError.is(error, 'connection_failed'));
    assert.match(error.message, /self-signed certificate/);
    return true;
  });
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, certificate.cert.toString()]);
  t.after(() => setDefaultCACertificates(before));
  const transport = await dialNode(request);
  t.after(() => transport.close());
  const channel = await ChannelClient.connect(transport);
  const { stdout } = await channel.run({ cmd: 'head', args: ['-c', '3000000', '/dev/zero'] });
  assert.equal(stdout.length, 3_000_000);
  // Servers with several certificates choose by the server name, and some refuse connections without one.
  assert.equal(asked.at(-1), 'localhost');
  const untrusted = `wss://127.0.0.1:${port}/v1/sandboxes/${sandboxId}/agent`;
  await assert.rejects(dialNode({ ...request, url: untrusted }), (error) =>
    SvcError.is(error, 'connection_failed'),
  );
});
