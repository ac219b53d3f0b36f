import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract';
import { startTestServer, type TestServer } from '../testing/test-server.ts';
import { checkPorts } from './publish-ports.ts';
import { freePort } from '../testing/free-port.ts';

async function listenAnywhere(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function create(server: TestServer, name: string, ports: readonly object[]) {
  return await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: { name, image: { type: 'oci', reference: 'python' }, network: { enabled: true, ports } },
  });
}

/** Sends everything, then reads everything. */
async function converse(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.end(text);
  const chunks = await Array.fromAsync(socket as AsyncIterable<Buffer>);
  return Buffer.concat(chunks).toString();
}

test('a published port leads to the service, both directions to their ends, until the sandbox stops', async (t) => {
  // Answers only after the end of its input.
  const service = createServer({ allowHalfOpen: true }, (socket) => {
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    socket.on('end', () => socket.end(`heard ${heard}`));
  });
  const guestPort = await listenAnywhere(t, service);
  const server = await startTestServer(t);
  const hostPort = await freePort();
  const { status, body } = await create(server, 'web', [{ guest_port: guestPort, host_port: hostPort }]);
  assert.deepEqual([status, body.status], [200, 'running'], JSON.stringify(body));
  assert.deepEqual(body.spec.network.ports, [
    { host_port: hostPort, guest_port: guestPort, host_bind: '127.0.0.1', protocol: 'tcp' },
  ]);
  assert.equal(await converse(hostPort, 'hello'), 'heard hello');
  // No refused connection is reported to the engine.
  assert.deepEqual(server.orchestrator.requestOf(body.id).spec.network, { enabled: true });
  await server.rest('POST', `/sandboxes/${body.id}/stop`);
  await waitUntil(async () => {
    return await converse(hostPort, '').then(
      () => false,
      () => true,
    );
  }, 'the port is closed');
});

test('connections that arrive before the program listens are served once it does', async (t) => {
  const guestPort = await freePort();
  const server = await startTestServer(t);
  const hostPort = await freePort();
  await create(server, 'web', [{ guest_port: guestPort, host_port: hostPort }]);
  const early = connect({ port: hostPort, host: '127.0.0.1', allowHalfOpen: true });
  await once(early, 'connect');
  early.end('early');
  // It has been refused inside by the time that another connection was made and given up.
  const other = connect({ port: hostPort, host: '127.0.0.1' });
  await once(other, 'connect');
  other.destroy();
  const service = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
  t.after(() => service.close());
  service.listen(guestPort, '127.0.0.1');
  assert.equal(Buffer.concat(await Array.fromAsync(early as AsyncIterable<Buffer>)).toString(), 'early');
});

test('connections that arrive while the sandbox starts are served once its program listens', async (t) => {
  const guestPort = await listenAnywhere(
    t,
    createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket)),
  );
  const server = await startTestServer(t);
  const hostPort = await freePort();
  const ports = [{ guest_port: guestPort, host_port: hostPort }];
  const body = { name: 'web', image: { type: 'oci', reference: 'slow' }, network: { enabled: true, ports } };
  await server.rest('POST', '/sandboxes?start=true', { body });
  await waitUntil(() => server.orchestrator.fetching === 1, 'the start waits for its image');
  const early = converse(hostPort, 'early');
  // The first one has been refused by the time that another one was reported.
  const other = connect({ port: hostPort, host: '127.0.0.1' });
  await once(other, 'connect');
  other.destroy();
  server.orchestrator.finishFetching();
  assert.equal(await early, 'early');
});

test('a port that is taken is named, and nothing is made', async (t) => {
  const taken = await listenAnywhere(t, createServer());
  const server = await startTestServer(t);
  const { status, body } = await create(server, 'web', [{ guest_port: 80, host_port: taken }]);
  assert.deepEqual([status, body.error.code], [409, 'invalid_sandbox_config']);
  assert.match(body.error.message, new RegExp(`Port ${taken} of 127.0.0.1 is in use`));
  assert.equal((await server.rest('GET', '/sandboxes')).body.data.length, 0);
});

test('addresses that the operator did not allow and ports given twice are refused by their field', () => {
  const refused = (port: object, field: string, reason: RegExp) =>
    assert.throws(
      () => checkPorts([{ guest_port: 1, host_port: 2, ...port }], ['192.0.2.7']),
      (error: unknown) =>
        PlatformError.is(error, 'invalid_sandbox_config') &&
        error.details?.['field'] === `network.ports[0].${field}` &&
        reason.test(error.message),
    );
  refused({ host_bind: '0.0.0.0' }, 'host_bind', /--publish-address/);
  refused({ host_bind: 'localhost' }, 'host_bind', /IP address/);
  const twice = { guest_port: 1, host_port: 2 };
  assert.throws(() => checkPorts([twice, twice], []), /published twice/);
  const all = [{ ...twice, host_bind: '192.0.2.7' }, twice, { ...twice, protocol: 'udp' }] as const;
  assert.deepEqual(checkPorts(all, ['192.0.2.7']), [
    { host: 2, guest: 1, bind: '192.0.2.7' },
    { host: 2, guest: 1 },
    { host: 2, guest: 1, protocol: 'udp' },
  ]);
});
