import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { before, test } from 'node:test';
import { connect, type ConnectionOptions } from 'node:tls';
import fc from 'fast-check';
import { readClientHello } from './client-hello.ts';

let hello: Buffer;
before(async () => {
  hello = await greeting({ servername: 'API.Example.com', ALPNProtocols: ['h2', 'http/1.1'] });
});

test('server name and protocols are read from the hello of a real client', () => {
  const expected = { serverName: 'api.example.com', protocols: ['h2', 'http/1.1'], hasEncryptedHello: false };
  assert.deepEqual(readClientHello(hello), { kind: 'hello', hello: expected });
});

test('a client hello without a server name has a server name of null', async () => {
  const read = readClientHello(await greeting({}));
  assert.deepEqual(read, {
    kind: 'hello',
    hello: { serverName: null, protocols: [], hasEncryptedHello: false },
  });
});

test('a hello is incomplete until its last byte, for any split into chunks', () => {
  for (let length = 1; length < hello.length; length++)
    assert.equal(readClientHello(hello.subarray(0, length)).kind, 'incomplete', `${length} bytes`);
});

test('a hello spread over many records is read like one', () => {
  const message = hello.subarray(5);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: message.length - 1 }), { minLength: 1, maxLength: 6 }),
      (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), message.length];
        const records = edges.slice(1).map((end, index) => {
          const part = message.subarray(edges[index], end);
          const head = Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]);
          return Buffer.concat([head, part]);
        });
        assert.deepEqual(readClientHello(Buffer.concat(records)), readClientHello(hello));
      },
    ),
  );
});

test('an encrypted hello is detected, and a repeated extension is malformed', () => {
  const extension = Buffer.from([0xfe, 0x0d, 0, 1, 0]);
  const once = readClientHello(withExtensions(hello, extension));
  assert.equal(once.kind === 'hello' && once.hello.hasEncryptedHello, true);
  assert.equal(readClientHello(withExtensions(hello, extension, extension)).kind, 'malformed');
});

test('invalid server names are malformed', () => {
  for (const bad of ['api_example\0com', 'api.example/com', '-pi.example.co-', 'api..xample.com'])
    assert.equal(readClientHello(renamed(bad.padEnd(15, 'x').slice(0, 15))).kind, 'malformed', bad);
});

test('no input makes the reader throw', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: hello.length - 1 }),
      fc.integer({ min: 0, max: 255 }),
      (at, value) => {
        const bytes = Buffer.from(hello);
        bytes[at] = value;
        assert.ok(readClientHello(bytes).kind);
      },
    ),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) =>
      assert.ok(readClientHello(Buffer.from([22, 3, 1, ...bytes])).kind),
    ),
  );
});

async function greeting(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options });
  client.on('error', () => undefined);
  const [socket] = await once(server, 'connection');
  const [bytes] = await once(socket, 'data');
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

function renamed(name: string): Buffer {
  const bytes = Buffer.from(hello);
  const at =
    bytes.indexOf('API.Example.com', 'latin1') >= 0
      ? bytes.indexOf('API.Example.com')
      : bytes.indexOf('api.example.com');
  assert.ok(at > 0);
  bytes.write(name, at, 'latin1');
  return bytes;
}

/** Appends extensions and mends the four lengths around them. */
function withExtensions(original: Buffer, ...extensions: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat([original, ...extensions]);
  const added = bytes.length - original.length;
  bytes.writeUInt16BE(bytes.length - 5, 3);
  bytes.writeUIntBE(bytes.length - 9, 6, 3);
  const session = 9 + 34;
  const ciphers = session + 1 + (bytes[session] ?? 0);
  const compressions = ciphers + 2 + bytes.readUInt16BE(ciphers);
  const list = compressions + 1 + (bytes[compressions] ?? 0);
  bytes.writeUInt16BE(bytes.readUInt16BE(list) + added, list);
  return bytes;
}
