import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { makeTestHost } from '../testing/test-host.ts';
import type { RegistrySettings } from './registry.ts';
import { newTestStore, resolveOptions } from '../testing/test-store.ts';

/** A service on the host that callers must not reach; it counts connections. */
async function startService(t: TestContext): Promise<{ host: string; visits: () => number }> {
  let visits = 0;
  const server = createServer((socket) => {
    visits += 1;
    socket.on('error', () => {});
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  // `listen` on a host and port gives an AddressInfo.
  const { port } = server.address() as AddressInfo;
  return { host: `127.0.0.1:${port}`, visits: () => visits };
}

test('a registry is asked from the network of a sandbox, unless the operator named it', async (t) => {
  await using host = await makeTestHost();
  const service = await startService(t);
  const [userPath, namespace] = [join(host.folder, 'user'), join(host.folder, 'net')];
  const link = null;
  await host.calls.createNamespaces({ userPath, networkPath: namespace, idBase: 1_300_000_000, link });
  const lent: string[] = [];
  const publicNetwork: RegistrySettings['publicNetwork'] = async () => {
    lent.push('lent');
    return {
      namespace,
      nameserver: '192.0.2.1',
      [Symbol.asyncDispose]: async () => void lent.push('given back'),
    };
  };
  const pull = async (settings: Partial<RegistrySettings>) => {
    // A reference to the host itself is refused before any connection; this stands for a name that resolves to the host.
    const registries = { publicNetwork, allowHostLocal: true, requestTimeoutMs: 100_000, ...settings };
    const { store } = await newTestStore(t, { registries });
    return await store.resolve(`${service.host}/x`, resolveOptions()).then(
      () => assert.fail('there is no image'),
      (error: unknown) => String(error),
    );
  };
  assert.match(await pull({}), /refuses connections.*--trusted-registry/);
  assert.equal(service.visits(), 0, 'a service of the host was reached');
  assert.deepEqual(lent, ['lent', 'given back']);

  for (const named of [{ insecure: [service.host] }, { trusted: [service.host] }]) {
    const before = service.visits();
    assert.doesNotMatch(await pull({ allowHostLocal: false, ...named }), /--trusted-registry/);
    assert.ok(service.visits() > before, 'the operator named it, and it was not asked');
  }
  assert.equal(lent.length, 2);
});
