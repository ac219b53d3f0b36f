import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  AuthenticationError,
  CommandExitError,
  FileNotFoundError,
  InvalidArgumentError,
  Sandbox,
  SandboxError,
  Template,
  TimeoutError,
  Volume,
} from 'e2b';
import { waitUntil } from '@svc/contract/testing';
import { E2bClients } from './start-e2b.ts';

type Client = E2bClients['options'];

let clients: E2bClients;
let client: Client;
let sandbox: Sandbox;
before(async () => {
  clients = await E2bClients.start('base');
  client = clients.options;
  sandbox = await Sandbox.create({
    ...client,
    metadata: { 'a b': 'b&c' },
    envs: { GREETING: 'hi' },
    timeoutMs: 600_000,
  });
});
after(() => clients.destroy());

const run = async (command: string, options: object = {}) =>
  (await sandbox.commands.run(command, options)).stdout;

test('a command: output, exit code, environment, folder and user', async () => {
  const said = await sandbox.commands.run('echo $GREETING $MORE; pwd; whoami; echo err >&2', {
    envs: { MORE: 'there' },
    cwd: '/tmp',
  });
  assert.deepEqual([said.exitCode, said.stdout, said.stderr], [0, 'hi there\n/tmp\nuser\n', 'err\n']);
  assert.equal(await run('pwd'), '/home/user\n');
  assert.equal(await run('whoami', { user: 'root' }), 'root\n');
  await assert.rejects(
    run('exit 3'),
    (error: unknown) => error instanceof CommandExitError && error.exitCode === 3,
  );
  await assert.rejects(run('true', { user: 'nobody-here' }), AuthenticationError);
  await assert.rejects(run('true', { cwd: '/nope' }), (error: unknown) => {
    return error instanceof InvalidArgumentError && error.message.includes("cwd '/nope' does not exist");
  });
});

test('a user that a command adds is there for the next one', async () => {
  await run('useradd -m late', { user: 'root' });
  assert.equal(await run('whoami; pwd; echo $HOME', { user: 'late' }), 'late\n/home/late\n/home/late\n');
  await run('usermod -d /tmp late', { user: 'root' });
  assert.equal(await run('pwd', { user: 'late' }), '/tmp\n');
});

test('sudo is for root, and says so to others', async () => {
  assert.equal(await run('sudo -n id -u', { user: 'root' }), '0\n');
  await assert.rejects(run('sudo -n id -u'), (error: unknown) => {
    return error instanceof CommandExitError && /E2B's clients: user 'root'/.test(error.stderr);
  });
});

test('a command is killed at its timeout', async () => {
  await assert.rejects(run('sleep 1234', { timeoutMs: 500 }), TimeoutError);
  await waitUntil(async () => !(await run('ps -eo args')).includes('sleep 1234'), { what: 'it is gone' });
});

test('a command in the background is listed, connected to and killed', async () => {
  const started = await sandbox.commands.run('read line; echo "got $line"; exec sleep 1000', {
    background: true,
    stdin: true,
  });
  const { pid } = started;
  await started.disconnect();
  assert.ok((await sandbox.commands.list()).some((process) => process.pid === pid));
  const again = await sandbox.commands.connect(pid);
  await sandbox.commands.sendStdin(pid, 'typed\n');
  await waitUntil(() => again.stdout === 'got typed\n', { what: 'it is heard' });
  assert.equal(await run(`kill -0 ${pid} && echo lives`), 'lives\n');
  assert.equal(await sandbox.commands.kill(pid), true);
  await assert.rejects(again.wait(), (error: unknown) => {
    return (
      error instanceof CommandExitError && error.exitCode === -1 && error.message.includes('signal: killed')
    );
  });
  assert.equal(await sandbox.commands.kill(pid), false);
});

test('input is closed, and a process without input refuses it', async () => {
  const cat = await sandbox.commands.run('cat', { background: true, stdin: true });
  await sandbox.commands.sendStdin(cat.pid, 'bytes');
  await sandbox.commands.closeStdin(cat.pid);
  assert.equal((await cat.wait()).stdout, 'bytes');
  const deaf = await sandbox.commands.run('sleep 1000', { background: true });
  await assert.rejects(sandbox.commands.sendStdin(deaf.pid, 'x'), /stdin not enabled or closed/);
  await deaf.kill();
});

test('a terminal is written to, resized and ended', async () => {
  let seen = '';
  const terminal = await sandbox.pty.create({
    cols: 80,
    rows: 24,
    onData: (data) => void (seen += new TextDecoder().decode(data)),
  });
  await sandbox.pty.resize(terminal.pid, { cols: 123, rows: 45 });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit 4\n'));
  await assert.rejects(
    terminal.wait(),
    (error: unknown) => error instanceof CommandExitError && error.exitCode === 4,
  );
  assert.match(seen, /45 123/);
});

test('files are written and read in every form', async () => {
  const { files } = sandbox;
  assert.deepEqual(await files.write('/tmp/d/ü.txt', 'hello'), {
    name: 'ü.txt',
    type: 'file',
    path: '/tmp/d/ü.txt',
    metadata: undefined,
  });
  assert.equal(await files.read('/tmp/d/ü.txt'), 'hello');
  const both = await files.write([
    { path: 'one.txt', data: '1' },
    { path: 'x/two.txt', data: new Blob(['2']) },
  ]);
  assert.deepEqual(
    both.map(({ path }) => path),
    ['/home/user/one.txt', '/home/user/x/two.txt'],
  );
  assert.equal(await run('stat -c %U:%a one.txt x x/two.txt'), 'user:644\nuser:755\nuser:644\n');
  const large = 'z'.repeat(5_000_000);
  await files.write('/tmp/large', large, { gzip: true });
  assert.equal((await files.read('/tmp/large', { format: 'bytes' })).length, large.length);
  await files.write('/tmp/octets', 'abc', { useOctetStream: true });
  let streamed = '';
  for await (const chunk of await files.read('/tmp/octets', { format: 'stream' }))
    streamed += new TextDecoder().decode(chunk);
  assert.equal(streamed, 'abc');
  await files.write('/tmp/empty', '');
  assert.equal(await files.read('/tmp/empty'), '');
  await assert.rejects(files.read('/nope'), FileNotFoundError);
  await assert.rejects(files.read('/tmp'), InvalidArgumentError);
});

test('metadata of a file is kept with it, and replaced with it', async () => {
  const { files } = sandbox;
  const metadata = { purpose: 'a test', 'other-key': '' };
  assert.deepEqual((await files.write('/tmp/meta/a', '1', { metadata })).metadata, metadata);
  assert.deepEqual((await files.rename('/tmp/meta/a', '/tmp/meta/b')).metadata, metadata);
  assert.deepEqual((await files.getInfo('/tmp/meta/b')).metadata, metadata);
  const [listed] = await files.list('/tmp/meta');
  assert.deepEqual(listed?.metadata, metadata);
  await files.write('/tmp/meta/b', '2');
  assert.equal((await files.getInfo('/tmp/meta/b')).metadata, undefined);
  await assert.rejects(files.write('/tmp/meta/b', '3', { metadata: { ['k'.repeat(247)]: '' } }));
  assert.equal(await files.read('/tmp/meta/b'), '2');
});

test('a write goes through a link, replaces one that leads nowhere, and gives the file to the user', async () => {
  const { files } = sandbox;
  await run('mkdir -p /tmp/l && cd /tmp/l && echo old > real && ln -s real link && ln -s gone dangling');
  await run('chown root:root /tmp/l/real && chmod 600 /tmp/l/real', { user: 'root' });
  for (const name of ['link', 'dangling']) await files.write(`/tmp/l/${name}`, name);
  const shown = 'cd /tmp/l && cat real dangling && stat -c "%N %U %a" link real dangling';
  assert.equal(
    await run(shown),
    "linkdangling'link' -> 'real' user 777\n'real' user 600\n'dangling' user 644\n",
  );
  await assert.rejects(files.remove('/'), /must not be the root/);
});

test('folders are made, listed, moved and removed', async () => {
  const { files } = sandbox;
  assert.equal(await files.makeDir('/tmp/m/n'), true);
  assert.equal(await files.makeDir('/tmp/m/n'), false);
  await files.write('/tmp/m/b', '2');
  await files.write('/tmp/m/n/a', '1');
  const listed = await files.list('/tmp/m', { depth: 2 });
  assert.deepEqual(
    listed.map(({ path }) => path),
    ['/tmp/m/b', '/tmp/m/n', '/tmp/m/n/a'],
  );
  const { path, type, permissions, owner, group } = await files.rename('/tmp/m/n', '/tmp/m/o/p');
  assert.deepEqual(
    [path, type, permissions, owner, group],
    ['/tmp/m/o/p', 'dir', 'drwxr-xr-x', 'user', 'user'],
  );
  await run('ln -s /tmp/m/b /tmp/m/link');
  const link = await files.getInfo('/tmp/m/link');
  assert.deepEqual([link.type, link.permissions, link.symlinkTarget], ['file', 'Lrw-r--r--', '/tmp/m/b']);
  await files.remove('/tmp/m');
  assert.equal(await files.exists('/tmp/m'), false);
  await assert.rejects(files.list('/tmp/m'), FileNotFoundError);
  await assert.rejects(files.list('/etc/passwd'), InvalidArgumentError);
});

test('changes in a folder are reported, in folders that are new, too', async () => {
  const seen: string[] = [];
  await sandbox.files.makeDir('/tmp/watched');
  const watch = await sandbox.files.watchDir(
    '/tmp/watched',
    ({ type, name }) => void seen.push(`${type} ${name}`),
    {
      recursive: true,
    },
  );
  await sandbox.files.write('/tmp/watched/a', 'x');
  await sandbox.files.rename('/tmp/watched/a', '/tmp/watched/b');
  await sandbox.files.write('/tmp/watched/b', 'again');
  await sandbox.files.remove('/tmp/watched/b');
  const wanted = ['create a', 'write a', 'rename a', 'create b', 'write b', 'remove b'];
  await waitUntil(() => wanted.every((each) => seen.includes(each)), {
    what: `${wanted.join()} are reported`,
  });
  // A file is written beside the one that it replaces, which clients are not told.
  assert.deepEqual([...new Set(seen.map((each) => each.split(' ')[1]))], ['a', 'b']);
  await watch.stop();
  await assert.rejects(
    sandbox.files.watchDir('/nope', () => undefined),
    FileNotFoundError,
  );
});

test('ranges of a file are read', async () => {
  await sandbox.files.write('/tmp/ranged', '0123456789');
  const link = await sandbox.downloadUrl('/tmp/ranged');
  const part = async (range: string) => {
    const answer = await fetch(link, { headers: { range } });
    return [answer.status, answer.headers.get('content-range'), await answer.text()];
  };
  assert.deepEqual(await part('bytes=2-4'), [206, 'bytes 2-4/10', '234']);
  assert.deepEqual(await part('bytes=-3'), [206, 'bytes 7-9/10', '789']);
  assert.deepEqual(await part('lines=1-2'), [200, null, '0123456789']);
  assert.deepEqual((await part('bytes=10-')).slice(0, 2), [416, 'bytes */10']);
});

test('signed links read and write one file, until they expire', async () => {
  await sandbox.files.write('/tmp/signed', 'by link');
  const link = await sandbox.downloadUrl('/tmp/signed', { useSignatureExpiration: 60 });
  assert.equal(await (await fetch(link)).text(), 'by link');
  const other = await fetch(link.replace('signed', 'octets'));
  assert.deepEqual([other.status, await other.json()], [401, { code: 401, message: 'invalid signature' }]);
  const late = await fetch(await sandbox.downloadUrl('/tmp/signed', { useSignatureExpiration: -60 }));
  assert.deepEqual(await late.json(), { code: 401, message: 'signature is already expired' });
  const form = new FormData();
  form.append('file', 'uploaded');
  const sent = await fetch(await sandbox.uploadUrl('/tmp/up'), { method: 'POST', body: form });
  assert.equal(sent.status, 200, await sent.text());
  assert.equal(await sandbox.files.read('/tmp/up'), 'uploaded');
});

test('a port is reached by its host; one without public traffic takes the traffic token', async () => {
  const serve = 'while true; do echo -e "HTTP/1.0 200 OK\\r\\n\\r\\nserved" | busybox nc -l -p 8000; done';
  await sandbox.commands.run(serve, { background: true, timeoutMs: 0 });
  const { server } = clients;
  const get = async (of: Sandbox, headers: Record<string, string> = {}) => {
    const host = of.getHost(8000);
    const { request } = await import('node:http');
    return await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const asked = request(server.url, { headers: { ...headers, host } }, (response) => {
        let body = '';
        response.on('data', (data: Buffer) => (body += data.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      });
      asked.on('error', reject);
      asked.end();
    });
  };
  await waitUntil(async () => (await get(sandbox)).body.includes('served'), { what: 'the port answers' });
  const closed = await Sandbox.create({ ...client, network: { allowPublicTraffic: false } });
  assert.equal((await get(closed)).status, 403);
  const token = closed.trafficAccessToken ?? '';
  assert.notEqual((await get(closed, { 'e2b-traffic-access-token': token })).status, 403);
  await closed.kill();
});

test('sandboxes are found by metadata, in pages, and only in the own organization', async () => {
  const other = await Sandbox.create(client);
  const all = Sandbox.list({ ...client, limit: 1 });
  const pages = [await all.nextItems(), await all.nextItems()].flat().map(({ sandboxId }) => sandboxId);
  assert.deepEqual(pages, [other.sandboxId, sandbox.sandboxId]);
  assert.equal(all.hasNext, false);
  const found = Sandbox.list({
    ...client,
    query: { metadata: { 'a b': 'b&c' }, state: ['running', 'paused'] },
  });
  const [only, ...more] = await found.nextItems();
  assert.deepEqual([only?.sandboxId, only?.metadata, more.length], [sandbox.sandboxId, { 'a b': 'b&c' }, 0]);
  const elsewhere = await clients.optionsOf('elsewhere');
  assert.deepEqual(await Sandbox.list(elsewhere).nextItems(), []);
  await assert.rejects(Sandbox.connect(other.sandboxId, elsewhere));
  assert.equal(await Sandbox.kill(other.sandboxId, elsewhere), false);
  assert.equal(await other.kill(), true);
  assert.equal(await other.kill(), false);
  assert.equal(await other.isRunning(), false);
});

test('time is set and only lengthened by a connect', async () => {
  const left = async () => (await sandbox.getInfo()).endAt.getTime() - Date.now();
  await sandbox.setTimeout(900_000);
  assert.ok(Math.abs((await left()) - 900_000) < 20_000);
  const again = await Sandbox.connect(sandbox.sandboxId, { ...client, timeoutMs: 60_000 });
  assert.equal((await again.commands.run('echo same')).stdout, 'same\n');
  assert.ok((await left()) > 600_000);
});

test('a snapshot keeps the disk, by id and by name', async () => {
  await sandbox.files.write('/home/user/kept', 'on disk');
  const { snapshotId, names } = await sandbox.createSnapshot({ name: 'kept' });
  assert.deepEqual(names, ['kept']);
  assert.deepEqual(
    (await Sandbox.listSnapshots(client).nextItems()).map((snapshot) => snapshot.snapshotId),
    [snapshotId],
  );
  assert.equal(await Template.exists('kept', client), true);
  const copy = await Sandbox.create(snapshotId, client);
  assert.equal(await copy.files.read('/home/user/kept'), 'on disk');
  await copy.kill();
  assert.equal(await Sandbox.deleteSnapshot(snapshotId, client), true);
  assert.equal(await Sandbox.deleteSnapshot(snapshotId, client), false);
});

test('a volume is filled, mounted and destroyed', async () => {
  const volume = await Volume.create('shelf', { ...client, apiUrl: client.apiUrl });
  await volume.writeFile('/a/b.txt', 'kept', client);
  assert.equal(await volume.readFile('/a/b.txt', client), 'kept');
  await assert.rejects(volume.readFile('/nope', client));
  const [entry] = await volume.list('/a', client);
  assert.deepEqual([entry?.path, entry?.type], ['/a/b.txt', 'file']);
  const box = await Sandbox.create({ ...client, volumeMounts: { '/mnt/shelf': volume } });
  assert.equal((await box.commands.run('cat /mnt/shelf/a/b.txt')).stdout, 'kept');
  assert.deepEqual((await box.getInfo()).volumeMounts, [{ name: 'shelf', path: '/mnt/shelf' }]);
  await box.kill();
  await waitUntil(async () => await Volume.destroy(volume.volumeId, client).catch(() => false), {
    what: 'the volume is destroyed once the sandbox is gone',
  });
});

test('metrics are of this sandbox, and the network is replaced', async () => {
  await waitUntil(async () => (await sandbox.getMetrics()).length > 0, { what: 'it was measured' });
  const [metrics] = await sandbox.getMetrics();
  assert.ok(metrics?.memTotal === 512 * 2 ** 20 && metrics.memUsed > 0, JSON.stringify(metrics));
  await sandbox.updateNetwork({ denyOut: ['0.0.0.0/0'], allowOut: ['1.1.1.1'] });
  assert.equal((await sandbox.getInfo()).allowInternetAccess, true);
  await sandbox.updateNetwork({ allowInternetAccess: false });
  assert.equal((await sandbox.getInfo()).allowInternetAccess, false);
});

test('unsupported calls are refused with a sentence and change nothing', async () => {
  const refused = (sentence: RegExp) => (error: unknown) =>
    error instanceof SandboxError && error.message.startsWith('400') && sentence.test(error.message);
  await assert.rejects(sandbox.pause(), refused(/pause is not offered yet/));
  await assert.rejects(
    Sandbox.create({ ...client, lifecycle: { onTimeout: 'pause' } }),
    refused(/autoPause/),
  );
  const network = { egressProxy: { address: 'proxy:1' } };
  await assert.rejects(Sandbox.create({ ...client, network }), refused(/egressProxy is not offered/));
  await assert.rejects(Sandbox.create('no-such-template', client), /template 'no-such-template' not found/);
  await assert.rejects(Sandbox.create({ ...client, apiKey: 'svc_wrong' }), AuthenticationError);
  assert.equal((await Sandbox.list(client).nextItems()).length, 1);
});
