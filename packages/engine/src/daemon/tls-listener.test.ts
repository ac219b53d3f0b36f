import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { pino } from 'pino';
import { PlatformError } from '@svc/contract/errors';
import { TestAuthority, waitUntil } from '@svc/contract/testing';
import { EngineClient } from '../client/engine-client.ts';
import { TlsCredentials, type TlsFiles } from '../client/tls-credentials.ts';
import { createHttpServer, type Routes } from './http-server.ts';
import { sendBytes, sendLines, sendProgress } from './streams.ts';
import { listenWithTls, type ListenTimes } from './tls-listener.ts';

const HOST = '127.0.0.1';
const MIB = 1024 * 1024;

let authority: TestAuthority;
let engineFiles: TlsFiles;
let serverFiles: TlsFiles;
before(async () => {
  authority = await TestAuthority.create();
  engineFiles = await authority.engine();
  serverFiles = await authority.server();
});
after(() => authority[Symbol.asyncDispose]());

/** What an engine answers, without an engine. */
const ROUTES: Routes = {
  'GET /capabilities': async () => await Promise.resolve({ version: 'over TLS' }),
  'POST /images/pull': async (call) => {
    await call.json();
    return await sendProgress(call, async (onProgress) => {
      onProgress({ step: 'resolving', reference: 'x' });
      return await Promise.resolve({ id: 'sha256:0' });
    });
  },
  'GET /events': async ({ response }) => {
    await sendLines(response, events());
    return undefined;
  },
  'GET /volumes/:id/content': async ({ response }) => {
    await sendBytes(response, bytes());
    return undefined;
  },
  'PUT /volumes/:id/content': async ({ request, params }) => {
    let sum = 0;
    for await (const chunk of request) {
      sum += (chunk as Buffer).length;
      if (params['id'] === 'full') throw new PlatformError('disk_full', 'the volume is full');
    }
    return { sum };
  },
};

async function* events(): AsyncGenerator {
  for (const sequence of [1, 2]) yield await Promise.resolve({ sequence });
}

async function* bytes(): AsyncGenerator<Uint8Array> {
  for (let count = 0; count < 8; count++) yield await Promise.resolve(Buffer.alloc(MIB, count));
}

async function listen(
  t: TestContext,
  {
    files = engineFiles,
    times,
    onLine,
  }: { files?: TlsFiles; times?: ListenTimes; onLine?: (line: string) => void } = {},
) {
  const logger = pino({ level: 'info' }, { write: onLine ?? (() => undefined) });
  const echo = async (_path: string, socket: Duplex) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: svc-channel\r\n\r\n');
    socket.pipe(socket);
    await Promise.resolve();
  };
  const http = createHttpServer(ROUTES, echo, { logger });
  const listener = await listenWithTls(
    http,
    { host: HOST, port: 0 },
    new TlsCredentials(files),
    logger,
    times,
  );
  t.after(() => listener.close());
  return listener;
}

function clientOf(t: TestContext, port: number, files = serverFiles, host = HOST): EngineClient {
  const client = new EngineClient({ host, port, credentials: new TlsCredentials(files) });
  t.after(() => client.close());
  return client;
}

/** Everything that the engine says to a caller before the connection ends. */
async function readToEnd(socket: Socket): Promise<string> {
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  await new Promise((closed) => socket.once('close', closed));
  return heard;
}

test('calls, progress, streams, files and channels go over TLS as over the socket', async (t) => {
  const { port } = await listen(t);
  const client = clientOf(t, port);
  assert.partialDeepStrictEqual(await client.capabilities(), { version: 'over TLS' });
  const steps: string[] = [];
  await client.images.pullImage({ reference: 'x' }, ({ step }) => steps.push(step));
  assert.deepEqual(steps, ['resolving']);
  const sequences: number[] = [];
  for await (const { sequence } of client.events()) sequences.push(sequence);
  assert.deepEqual(sequences, [1, 2]);
  let length = 0;
  for await (const chunk of await client.volumes.readVolumeFile('v', 'x')) length += chunk.length;
  assert.equal(length, 8 * MIB);
  await client.volumes.writeVolumeFile('v', 'x', bytes());
  const channel = await client.openChannel('a');
  channel.write('there and back');
  assert.equal(String((await once(channel, 'data'))[0]), 'there and back');
  channel.destroy();
});

test('an upload that is refused half-way says why, and leaves its connection to no other call', async (t) => {
  const { port } = await listen(t);
  const client = clientOf(t, port);
  for (let count = 0; count < 3; count++) {
    await assert.rejects(client.volumes.writeVolumeFile('full', 'x', bytes()), { code: 'disk_full' });
    assert.partialDeepStrictEqual(await client.capabilities(), { version: 'over TLS' });
  }
});

test('callers without the certificate of a server learn nothing, and the log says why', async (t) => {
  const lines: string[] = [];
  const { port } = await listen(t, { onLine: (line) => lines.push(line) });
  await using other = await TestAuthority.create();
  const wrong: Readonly<Record<string, TlsFiles>> = {
    'signed by another authority': { ...(await other.server()), ca: authority.ca },
    'that has expired': await authority.sign('DNS:svc-server', -1),
    'of an engine': await authority.engine(),
    'whose name a pattern would match': await authority.sign('DNS:*.svc-server,DNS:svc-*'),
  };
  for (const [which, files] of Object.entries(wrong)) {
    const [cert, key, ca] = await Promise.all(
      [files.cert, files.key, files.ca].map((path) => readFile(path)),
    );
    const socket = connectTls({ host: HOST, port, cert, key, ca });
    socket.write('GET /capabilities HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.equal(await readToEnd(socket), '', `a certificate ${which}`);
  }
  const none = connectTls({ host: HOST, port, ca: await readFile(authority.ca) });
  none.write('GET /capabilities HTTP/1.1\r\nhost: x\r\n\r\n');
  assert.equal(await readToEnd(none), '', 'no certificate');
  const plain = connectTcp(port, HOST);
  plain.write('GET /capabilities HTTP/1.1\r\nhost: x\r\n\r\n');
  assert.doesNotMatch(await readToEnd(plain), /HTTP|version/, 'no TLS');
  assert.match(lines[0] ?? '', /"reason":".+","count":1,"msg":"a caller was refused"/);
  assert.equal(lines.length, 1, 'a flood of callers does not fill the log');
});

test('older versions of TLS are refused', async (t) => {
  const { port } = await listen(t);
  const { ca, cert, key } = new TlsCredentials(serverFiles).current;
  const socket = connectTls({ host: HOST, port, ca, cert, key, maxVersion: 'TLSv1.2' });
  const [error] = await once(socket, 'error');
  assert.equal((error as NodeJS.ErrnoException).code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
});

test('a connection that never shows a certificate is closed', async (t) => {
  const { port } = await listen(t, { times: { handshakeMs: 50 } });
  assert.equal(await readToEnd(connectTcp(port, HOST)), '');
});

test('a client refuses an engine of another authority or another host, and says what is wrong', async (t) => {
  const { port } = await listen(t);
  await using other = await TestAuthority.create();
  const distrusting = clientOf(t, port, { ...serverFiles, ca: other.ca });
  await assert.rejects(distrusting.capabilities(), {
    code: 'orchestrator_unreachable',
    message:
      /^the engine at 127\.0\.0\.1:\d+ has a certificate that cannot be used \((?:SELF_SIGNED|UNABLE_TO)_/,
  });
  const { port: elsewhere } = await listen(t, { files: await authority.sign('DNS:node-b.example.com') });
  await assert.rejects(clientOf(t, elsewhere).capabilities(), { message: /ERR_TLS_CERT_ALTNAME_INVALID/ });
  const { port: strict } = await listen(t);
  await assert.rejects(clientOf(t, strict, await authority.engine()).capabilities(), {
    code: 'orchestrator_unreachable',
    message: /closed the connection: it was stopped, or refuses this server's certificate/,
  });
});

test('certificates that are replaced are used without a restart, unless the new files do not fit together', async (t) => {
  const lines: string[] = [];
  const files = await authority.sign('IP:127.0.0.1', 1);
  const { port } = await listen(t, { files, times: { lookMs: 20 }, onLine: (line) => lines.push(line) });
  const shown = async () => {
    const socket = connectTls({ host: HOST, port, ...new TlsCredentials(serverFiles).current });
    await once(socket, 'secureConnect');
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };
  const former = await shown();
  const next = await authority.sign('IP:127.0.0.1', 2);
  await copyFile(next.cert, files.cert);
  assert.equal(await shown(), former, 'the key of the new certificate is not there yet');
  await copyFile(next.key, files.key);
  await waitUntil(async () => (await shown()) !== former);
  assert.match(lines.join(''), /the replaced certificate is used from now on/);
});

test('files that cannot be used are refused by name, with a remedy', async () => {
  const files = await authority.server();
  const refuses = (wrong: Partial<TlsFiles>, message: RegExp) =>
    assert.throws(() => new TlsCredentials({ ...files, ...wrong }), { code: 'invalid_request', message });
  refuses({ cert: '/nowhere.crt' }, /^\/nowhere\.crt cannot be read \(ENOENT\)$/);
  refuses({ ca: files.cert }, /\.crt is not the certificate of an authority$/);
  refuses({ key: serverFiles.key }, /^the key \S+ does not belong to the certificate \S+$/);
  const text = join(authority.folder, 'text');
  await writeFile(text, 'text', { mode: 0o600 });
  refuses({ cert: text }, /text is not a certificate in PEM$/);
  refuses({ key: text }, /text is not a private key in PEM$/);
  await chmod(files.key, 0o644);
  refuses({}, /^the key (\S+) is open to other users \(mode 0644\); chmod 600 \1$/);
});
