import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createStreamServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { flawOfTarget, OutboundError, sendOutbound } from './send-outbound.ts';

const PUBLIC_ONLY = { mayReachInside: false };
const ANYWHERE = { mayReachInside: true };
const LIMITS = { timeoutMs: 10_000, maxAnswerBytes: 64 };

async function listen(t: TestContext, answer: RequestListener): Promise<URL> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  t.after(() => server.close().closeAllConnections());
  await once(server, 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
}

test('addresses inside are refused in every notation, and what is not TLS', () => {
  const flawed = [
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[2001:0:5ef5:79fb::1]/',
    'https://[::7f00:1]/',
    'https://[64:ff9b:1::1]/',
    'https://[fe80::1]/',
    'https://127.0.0.1./',
    'https://１２７.0.0.1/',
    'https://[fd00::1]/',
    'http://93.184.215.14/',
    'ftp://93.184.215.14/',
    'https://user:word@93.184.215.14/',
  ];
  for (const each of flawed) assert.notEqual(flawOfTarget(new URL(each), PUBLIC_ONLY), null, each);
  assert.equal(flawOfTarget(new URL('https://93.184.215.14/'), PUBLIC_ONLY), null);
  assert.equal(flawOfTarget(new URL('http://127.0.0.1/'), ANYWHERE), null);
});

test('a name that leads inside is not connected to', async (t) => {
  let asked = 0;
  const url = await listen(t, (_request, response) => {
    asked += 1;
    response.end('secret');
  });
  const named = new URL(`https://localhost:${url.port}/`);
  await assert.rejects(sendOutbound(PUBLIC_ONLY, { url: named, method: 'GET', ...LIMITS }), (error) => {
    assert.ok(error instanceof OutboundError);
    assert.match(error.message, /localhost leads to no public address/);
    return true;
  });
  assert.equal(asked, 0);
});

test('an answer is read up to its bound, and a redirect is an answer like any other', async (t) => {
  const url = await listen(t, (request, response) => {
    if (request.url === '/long') response.end('x'.repeat(1000));
    else response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end('moved');
  });
  const moved = await sendOutbound(ANYWHERE, { url, method: 'POST', body: '{}', ...LIMITS });
  assert.deepEqual([moved.status, moved.body.toString(), moved.isCut], [302, 'moved', false]);
  const long = await sendOutbound(ANYWHERE, { url: new URL('/long', url), method: 'GET', ...LIMITS });
  assert.deepEqual([long.body.length, long.isCut], [64, true]);
});

test('a silent receiver, a broken answer and a missing receiver are distinguished', async (t) => {
  const silent = await listen(t, () => undefined);
  const fails = async (url: URL, timeoutMs: number) =>
    await sendOutbound(ANYWHERE, { url, method: 'GET', ...LIMITS, timeoutMs }).then(() => 'answered', String);
  assert.match(await fails(silent, 50), /did not answer within 50 ms/);
  const broken = await listen(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '50' });
    response.write('a');
    setImmediate(() => response.destroy());
  });
  assert.match(await fails(broken, 10_000), /could not be asked: aborted|ended early/);
  assert.match(await fails(new URL('http://127.0.0.1:1/'), 10_000), /ECONNREFUSED/);
});

test('interim answers without end are given up, and a few are read past', async (t) => {
  for (const line of ['100 Continue', '103 Early Hints']) {
    const interim = `HTTP/1.1 ${line}\r\n\r\n`;
    let written = 0;
    const flood = createStreamServer((socket) => {
      socket.on('error', () => undefined);
      const pour = (): void => {
        do written += 1;
        while (socket.write(interim.repeat(100)));
      };
      socket.once('data', pour).on('drain', pour);
    }).listen(0, '127.0.0.1');
    t.after(() => flood.close());
    await once(flood, 'listening');
    const url = new URL(`http://127.0.0.1:${(flood.address() as AddressInfo).port}/`);
    const asked = sendOutbound(ANYWHERE, { url, method: 'POST', body: '{}', ...LIMITS });
    await assert.rejects(asked, /more than 16 interim answers/);
    assert.ok(written > 0);
  }
  const url = await listen(t, (_request, response) => {
    response.writeEarlyHints({ link: '</x>; rel=preload' });
    response.writeProcessing();
    response.end('here');
  });
  assert.equal((await sendOutbound(ANYWHERE, { url, method: 'GET', ...LIMITS })).body.toString(), 'here');
});
