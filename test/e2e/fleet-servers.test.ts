import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { TestAuthority, waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { TestPostgres } from '../../packages/server/src/testing/test-postgres.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestEngine } from '../engine/start-engine.ts';
import { FleetServer, SERVER_USER } from './fleet-server.ts';

const exec = promisify(execFile);
const SLOW = { timeoutMs: 60_000 };
/** Of this host, on a link to a namespace that plays the host of the second server. */
const ADDRESS = `198.18.${process.pid % 256}.1`;
const SECOND_ADDRESS = ADDRESS.replace(/1$/, '2');
const NAMESPACE = `svc-fleet-${process.pid}`;
const LINK = `sf${process.pid}`;
const DOMAIN = 'preview.test';
/** A page over TCP, and each datagram back over UDP. */
const SERVICE = `
import http.server, socket, threading
def echo():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 5353))
    while True:
        data, sender = s.recvfrom(65535)
        s.sendto(data, sender)
threading.Thread(target=echo, daemon=True).start()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the page")
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Page).serve_forever()
`;
/** Asks a port of its host: a page, or a datagram until it comes back. */
const ASK = `
import socket, sys, urllib.request
kind, port = sys.argv[1], int(sys.argv[2])
if kind == "tcp":
    print(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read().decode())
    sys.exit()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for _ in range(30):
    s.sendto(b"a datagram", ("127.0.0.1", port))
    try:
        print(s.recv(65535).decode())
        break
    except socket.timeout:
        pass
`;

let authority: TestAuthority;
let postgres: TestPostgres;
let servers: readonly [FleetServer, FleetServer];
const engines = new Map<string, TestEngine>();

before(async () => {
  await exec('ip', ['netns', 'add', NAMESPACE]);
  await exec('ip', ['link', 'add', LINK, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', NAMESPACE]);
  await exec('ip', ['addr', 'add', `${ADDRESS}/24`, 'dev', LINK]);
  await exec('ip', ['link', 'set', LINK, 'up']);
  await exec('ip', ['-n', NAMESPACE, 'addr', 'add', `${SECOND_ADDRESS}/24`, 'dev', 'eth0']);
  for (const link of ['eth0', 'lo']) await exec('ip', ['-n', NAMESPACE, 'link', 'set', link, 'up']);
  authority = await TestAuthority.create();
  await chmod(authority.folder, 0o711);
  const files = await authority.server();
  await chown(files.key, Number.parseInt(SERVER_USER, 10), 0);
  const nodes: object[] = [{ name: 'absent', url: `https://${ADDRESS}:1`, ...files }];
  for (const name of ['a', 'b']) {
    const { ca, cert, key } = await authority.engine(ADDRESS);
    const port = await freePort();
    const tls = ['--listen', `${ADDRESS}:${port}`, '--tls-cert', cert, '--tls-key', key, '--tls-ca', ca];
    const engine = await TestEngine.start({ args: ['--isolation', 'container', ...tls] });
    engines.set(name, engine);
    await importPython(engine);
    nodes.push({ name, url: `https://${ADDRESS}:${port}`, ...files });
  }
  const list = join(authority.folder, 'nodes.json');
  await writeFile(list, JSON.stringify({ nodes }));
  postgres = await TestPostgres.start();
  const options = [
    '--nodes',
    list,
    '--database',
    await postgres.createDatabase(),
    '--preview-domain',
    DOMAIN,
  ];
  const first = await FleetServer.start({ address: '127.0.0.1', options });
  const second = await FleetServer.start({
    address: SECOND_ADDRESS,
    options: [...options, '--allow-remote-dev'],
    namespace: NAMESPACE,
    keysOf: first,
  });
  servers = [first, second];
});
after(async () => {
  for (const server of servers) await server.clear();
  for (const engine of engines.values()) await engine.destroy();
  await postgres[Symbol.asyncDispose]();
  await authority[Symbol.asyncDispose]();
  await exec('ip', ['link', 'del', LINK]).catch(() => undefined);
  await exec('ip', ['netns', 'del', NAMESPACE]).catch(() => undefined);
});

test('a server starts while a node is away, and says which', async () => {
  for (const server of servers) {
    const { stdout } = await server.svc('node', 'ls');
    assert.match(
      stdout,
      /^absent +away .*node absent is away: the engine at \S+:1 cannot be reached \(ECONNREFUSED\)/m,
    );
    assert.match(stdout, /^a +available +container/m);
    assert.match(stdout, /^b +available +container/m);
  }
});

test('two servers use what either has made, and reach its published ports and previews', async () => {
  const [first, second] = servers;
  const [tcp, udp] = [await freePort('tcp'), await freePort('udp')];
  const boxes = [];
  for (const name of ['web', 'other']) {
    const ports =
      name === 'other'
        ? []
        : [
            { guest_port: 8000, host_port: tcp },
            { guest_port: 5353, host_port: udp, protocol: 'udp' as const },
          ];
    const client = new Client({ apiUrl: first.url });
    boxes.push(await Sandbox.create({ client, name, image: 'python', network: { ports } }));
  }
  assert.deepEqual(new Set(boxes.map(({ info }) => info.node)), new Set(['a', 'b']));
  const through = await Sandbox.connect('web', { client: new Client({ apiUrl: second.url }) });
  await through.commands.startDetached('python3', ['-c', SERVICE]);
  for (const server of servers) {
    assert.equal((await server.svc('exec', 'web', 'echo', 'here')).stdout, 'here\n');
    assert.equal(await ask(server, 'tcp', tcp), 'the page\n');
    assert.equal(await ask(server, 'udp', udp), 'a datagram\n');
    assert.equal(await preview(server, through.info.id, through.info.slug), 'the page');
  }
});

test('a node that is lost takes its own sandboxes with it, for both servers, until it is back', async () => {
  const [first, second] = servers;
  const statusOf = async (server: FleetServer, name: string) =>
    (await Sandbox.connect(name, { client: new Client({ apiUrl: server.url }) })).info;
  const lost = await statusOf(first, 'web');
  await engines.get(lost.node ?? '')?.kill();
  const isStatus = async (status: string) =>
    (await statusOf(first, 'web')).status === status && (await statusOf(second, 'web')).status === status;
  await waitUntil(async () => await isStatus('temporarily_unavailable'), SLOW);
  assert.equal((await second.svc('exec', 'other', 'echo', 'still')).stdout, 'still\n');
  await engines.get(lost.node ?? '')?.launch();
  await waitUntil(async () => await isStatus('running'), SLOW);
  assert.equal((await second.svc('exec', 'web', 'echo', 'again')).stdout, 'again\n');
});

test('a list with a fault is refused at the start, by name', async () => {
  const list = join(authority.folder, 'faulty.json');
  await writeFile(
    list,
    JSON.stringify({
      nodes: [
        { name: 'a', url: 'unix:/x.sock' },
        { name: 'a', url: 'x' },
      ],
    }),
  );
  const { code, stderr } = await FleetServer.refused(['--nodes', list]);
  assert.equal(code, 2, stderr);
  assert.match(stderr, /nodes\[1\]\.name a is given twice/);
  const mixed = await FleetServer.refused(['--nodes', list, '--warm', 'python=1']);
  assert.equal(mixed.code, 2);
  assert.match(
    mixed.stderr,
    /--warm is an option of engines; with --nodes give it to `svc engine start` of each node/,
  );
});

async function ask(server: FleetServer, kind: 'tcp' | 'udp', port: number): Promise<string> {
  return await server.onItsHost('python3', '-c', ASK, kind, String(port));
}

/** The page of a preview that was made through this server. */
async function preview(server: FleetServer, id: string, slug: string): Promise<string> {
  const made = await fetch(`${server.url}/v1/sandboxes/${id}/previews`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ port: 8000 }),
  });
  const { token } = (await made.json()) as { token: string };
  const host = `8000-${slug}.${DOMAIN}`;
  const words = ['-sS', '-H', `Host: ${host}`, '-H', `X-Svc-Preview-Token: ${token}`, `${server.url}/`];
  return (await exec('curl', words)).stdout;
}
