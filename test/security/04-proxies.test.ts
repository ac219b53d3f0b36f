import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { scopeKey } from '../../packages/engine/src/egress/proxies.ts';
import {
  API,
  CLIENTS_IMAGE,
  EVIL_HTTP2,
  HttpsInternet,
  PLACEHOLDER,
  VALUE,
} from '../engine/https-internet.ts';
import { startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';

/** What a sandbox does to the proxy of its organization, in JavaScript, without an end; it says `begun` when it has begun. */
const ATTACKS: Readonly<Record<string, string>> = {
  'bodies full of placeholders': `
    const body = '${PLACEHOLDER}'.repeat(5000);
    for (let line = 0; line < 16; line++) open(API, (socket) => {
      const ask = () => socket.write('POST /busy HTTP/1.1\\r\\nHost: ' + API + '\\r\\nContent-Length: ' + body.length + '\\r\\n\\r\\n' + body);
      socket.on('data', ask);
      ask();
    });`,
  'heads that are sent ahead and never answered': `
    const head = 'POST /held HTTP/1.1\\r\\nHost: ' + API + '\\r\\nContent-Length: 9\\r\\n' + ('X-' + 'y'.repeat(1000) + ': z\\r\\n').repeat(50) + '\\r\\n';
    for (let line = 0; line < 100; line++) open(API, (socket) => {
      const ask = () => { while (socket.writable && socket.write(head + 'body body')); };
      socket.on('drain', ask).pause();
      ask();
    });`,
  'heads that come byte by byte, on as many connections as it may have': `
    for (let line = 0; line < 250; line++) open(API, (socket) => {
      socket.write('GET /slow HTTP/1.1\\r\\nHost: ' + API + '\\r\\nX-Slow: ');
      setInterval(() => socket.writable && socket.write('x'), 50);
    });`,
  'bodies that are held and never end': `
    for (let line = 0; line < 64; line++) open(API, (socket) => {
      socket.write('POST /held HTTP/1.1\\r\\nHost: ' + API + '\\r\\nContent-Type: application/json\\r\\nContent-Length: 16000000\\r\\n\\r\\n');
      const more = Buffer.alloc(65536, 'x');
      let sent = 0;
      const feed = () => { while (socket.writable && sent < 15000000) { sent += more.length; if (!socket.write(more)) return; } };
      socket.on('drain', feed);
      feed();
    });`,
  'heads over HTTP/2 on many streams': `
    for (let line = 0; line < 32; line++) {
      const session = require('node:http2').connect('https://' + H2).on('error', () => {});
      const ask = () => {
        if (session.closed) return;
        const stream = session.request({ ':method': 'POST', ...Object.fromEntries(Array.from({ length: 50 }, (_, at) => ['x-' + at, 'y'.repeat(1000)])) });
        stream.on('error', () => {}).on('close', () => setImmediate(ask)).resume();
      };
      session.once('connect', () => { begin(); for (let at = 0; at < 100; at++) ask(); });
    }`,
};

const PRELUDE = `
const [API, H2] = ['${API}', '${EVIL_HTTP2}'];
process.on('uncaughtException', () => {});
let hasBegun = false;
const begin = () => { if (!hasBegun) console.log('begun'); hasBegun = true; };
const open = (host, use) => {
  const socket = require('node:tls').connect({ host, servername: host, port: 443 });
  socket.on('error', () => {}).once('close', () => setTimeout(open, 100, host, use));
  socket.once('secureConnect', () => { begin(); use(socket); });
};
setInterval(() => {}, 1000);
`;

let world: HttpsInternet;
before(async () => {
  world = await HttpsInternet.start();
});
after(() => world[Symbol.asyncDispose]());

async function startOf(scope: string): Promise<TestSandbox> {
  const network = world.network({}, { injection: { headers: true, body: true } });
  const image = { type: 'oci', reference: CLIENTS_IMAGE } as const;
  return await startSandbox(
    world.engine,
    'container',
    { image, network },
    { imageScope: scope, secretValues: { API_KEY: VALUE } },
  );
}

function proxyOf(scope: string): number {
  const file = join(world.engine.runFolder, 'network', 'proxies', `${scopeKey(scope)}.json`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid;
}

/** None when the process has ended: a proxy whose last sandbox is gone may. */
function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).filter((name) => isSocket(join(folder, name))).length;
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    // Closed meanwhile.
    return false;
  }
}

/** The host is one for all, and busy with the attacker: what it does not take at first is tried again. */
async function asks(sandbox: TestSandbox): Promise<string> {
  const { stdout, stderr } = await sandbox.sh(
    `nslookup ${API} >&2; curl -sS -m 60 --retry 10 --retry-all-errors --retry-delay 1 https://${API}/victim`,
  );
  return stdout === '' ? stderr : stdout;
}

async function attack(t: TestContext, script: string): Promise<TestSandbox> {
  const sandbox = await startOf('attacker');
  t.after(() => sandbox.remove().catch(() => undefined));
  const channel = await sandbox.connect();
  t.after(() => channel.close());
  const running = await channel.exec({ cmd: '/usr/bin/node', args: ['-e', PRELUDE + script] });
  for await (const chunk of running.stdout) {
    assert.match(Buffer.from(chunk).toString(), /begun/);
    break;
  }
  return sandbox;
}

for (const [title, script] of Object.entries(ATTACKS))
  test(`another organization goes on beside ${title}, and they end with their sandbox`, async (t) => {
    const victim = await startOf('victim');
    t.after(() => victim.remove());
    const pid = proxyOf('victim');
    // Some sockets of a proxy are opened with its first request, and stay.
    assert.equal(await asks(victim), `hello from ${API}\n`);
    const quiet = socketsOf(pid);
    const attacker = await attack(t, script);
    for (let round = 0; round < 5; round++) assert.equal(await asks(victim), `hello from ${API}\n`);
    assert.equal(proxyOf('victim'), pid, 'its proxy is the same');
    await attacker.remove();
    await waitUntil(() => socketsOf(proxyOf('attacker')) <= quiet, {
      what: 'nothing of the sandbox is left in its proxy',
    });
    const next = await startOf('attacker');
    t.after(() => next.remove());
    assert.equal(await asks(next), `hello from ${API}\n`, 'the next sandbox is served');
  });
