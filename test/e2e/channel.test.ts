import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { ChannelClient } from '@svc/contract';
import { createKey } from '@svc/server/keys';
import { openChannel, openWebSocket, refusalOf } from '../../packages/server/src/testing/channel.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const MIB = 1024 * 1024;

let server: TestServer;
let key: string;
let address: { readonly url: string; readonly sandboxId: string; readonly key: string };

before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  ({ key } = await createKey(server.engine.folder, { namespace: 'default' }));
  address = await started('box', { envs: ['A=sandbox', 'B=sandbox'], workdir: '/tmp' });
});
after(() => server.destroy());

async function started(sandbox: string, config: object = {}): Promise<typeof address> {
  const params = { sandbox, namespace: 'default', config: { image: BUSYBOX, ...config } };
  const { error } = await server.call('sandbox.start', params, { authorization: `Bearer ${key}` });
  assert.equal(error, undefined);
  const all = await server.engine.client.listSandboxes();
  const newest = all.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt))[0];
  return { url: server.url, sandboxId: newest?.id ?? '', key };
}

async function open(t: TestContext): Promise<ChannelClient> {
  return (await openChannel(t, address)).channel;
}

async function shell(channel: ChannelClient, script: string, options = {}) {
  const { code, stdout, stderr } = await channel.run({ cmd: 'sh', args: ['-c', script], ...options });
  return { code, stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString() };
}

async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${await server.webPid()}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test('output, errors, exit codes, signals and missing programs come back as they are', async (t) => {
  const channel = await open(t);
  assert.deepEqual(await shell(channel, 'echo out; echo err >&2; exit 7'), {
    code: 7,
    stdout: 'out\n',
    stderr: 'err\n',
  });
  assert.equal((await shell(channel, 'kill -9 $$')).code, -1);
  await assert.rejects(channel.exec({ cmd: 'no-such-program' }), /no-such-program/);
});

test("the sandbox's environment and folder apply, and those of the request win", async (t) => {
  const channel = await open(t);
  assert.equal(
    (await shell(channel, 'echo $A $B $(pwd)', { env: { B: 'request' } })).stdout,
    'sandbox request /tmp\n',
  );
  assert.equal((await shell(channel, 'pwd', { cwd: '' })).stdout, '/tmp\n');
  assert.equal((await shell(channel, 'pwd', { cwd: '/' })).stdout, '/\n');
});

test('a terminal has a size that can change, and takes Ctrl-C', async (t) => {
  const channel = await open(t);
  const process = await channel.exec({ cmd: 'sh', tty: true, rows: 30, cols: 90 });
  let screen = '';
  const reading = (async () => {
    for await (const chunk of process.stdout) screen += Buffer.from(chunk).toString();
  })();
  await process.writeStdin(Buffer.from('stty size\n'));
  await waitUntil(() => screen.includes('30 90'), { what: 'the first size' });
  process.resize(40, 100);
  await process.writeStdin(Buffer.from('stty size\n'));
  await waitUntil(() => screen.includes('40 100'), { what: 'the second size' });
  // What is typed before the program runs would be taken for the shell's own line.
  await process.writeStdin(Buffer.from('sleep 1000 | (echo be\\gun; cat)\n'));
  await waitUntil(() => screen.includes('begun'), { what: 'the program runs' });
  await process.writeStdin(Buffer.from([0x03]));
  await process.writeStdin(Buffer.from('exit 5\n'));
  assert.equal((await process.exited).code, 5);
  await reading;
});

test('20 MB go up and down and are the same', async (t) => {
  const channel = await open(t);
  const content = randomBytes(20_000_000);
  await channel.files.writeFile('/tmp/big', content);
  const digest = createHash('sha256').update(content).digest('hex');
  assert.equal((await shell(channel, 'sha256sum /tmp/big')).stdout.split(' ')[0], digest);
  assert.ok(Buffer.from(await channel.files.readFile('/tmp/big')).equals(content));
});

test('a TCP connection reaches a server inside the sandbox', async (t) => {
  const channel = await open(t);
  const listening = await channel.exec({ cmd: 'sh', args: ['-c', 'echo ready; echo hello | nc -l -p 7777'] });
  await listening.stdout[Symbol.asyncIterator]().next();
  let text = '';
  await waitUntil(
    async () => {
      const stream = await channel.connectTcp('127.0.0.1', 7777).catch(() => undefined);
      if (stream === undefined) return false;
      for await (const chunk of stream.readable) text += Buffer.from(chunk).toString();
      return true;
    },
    { what: 'nc listens' },
  );
  assert.equal(text, 'hello\n');
});

test('a client that is cut off takes its processes with it, also when they do not read what it sent', async (t) => {
  const watcher = await open(t);
  const isThere = async (pid: number) => (await shell(watcher, `kill -0 ${pid}`)).code === 0;
  const { channel, socket } = await openChannel(t, address);
  const { pid } = await channel.exec({ cmd: 'sleep', args: ['1000'] });
  const stuck = await openChannel(t, address);
  const process = await stuck.channel.exec({ cmd: 'sleep', args: ['1000'] });
  const writing = process.writeStdin(new Uint8Array(3 * MIB)).catch(() => undefined);
  await Promise.race([writing, new Promise((resolve) => void setTimeout(resolve, 200))]);
  assert.ok((await isThere(pid)) && (await isThere(process.pid)));
  socket.terminate();
  stuck.socket.terminate();
  await waitUntil(async () => !(await isThere(pid)) && !(await isThere(process.pid)), {
    what: 'both processes are gone',
  });
});

test('a hundred processes at once over ten connections each get their own output', async (t) => {
  const channels = await Promise.all(Array.from({ length: 10 }, () => open(t)));
  const results = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const channel = channels[index % 10] as ChannelClient;
      return await shell(channel, `read x; echo ${index} $x; exit ${index}`, {}).then((result) => ({
        index,
        ...result,
      }));
    }),
  );
  for (const { index, code, stdout } of results) {
    assert.equal(code, index);
    assert.equal(stdout, `${index}\n`);
  }
});

test('a gigabyte of output passes through the server without gathering in its memory', async (t) => {
  const channel = await open(t);
  const process = await channel.exec({ cmd: 'dd', args: ['if=/dev/zero', 'bs=1M', 'count=1024'] });
  const before = await residentBytes();
  const startedAt = performance.now();
  let most = before;
  let received = 0;
  for await (const chunk of process.stdout) {
    if (Math.floor(received / (64 * MIB)) !== Math.floor((received + chunk.length) / (64 * MIB))) {
      most = Math.max(most, await residentBytes());
    }
    received += chunk.length;
  }
  t.diagnostic(`${Math.round(1024 / ((performance.now() - startedAt) / 1000))} MiB/s`);
  assert.equal(received, 1024 * MIB);
  assert.ok(most - before < 64 * MIB, `the server grew by ${Math.round((most - before) / MIB)} MiB`);
});

test('a client that reads nothing stops the process and costs the server nothing', async (t) => {
  const before = await residentBytes();
  const { channel, socket } = await openChannel(t, address);
  await channel.exec({ cmd: 'sh', args: ['-c', 'yes > /proc/self/fd/1 & echo $! > /tmp/yes; wait'] });
  socket.pause();
  const other = await open(t);
  const writtenBy = async () =>
    (await shell(other, 'grep wchar /proc/$(cat /tmp/yes)/io 2>/dev/null || cat /proc/$(cat /tmp/yes)/stat'))
      .stdout;
  let last = '';
  await waitUntil(
    async () => {
      const now = await writtenBy();
      const isStill = now !== '' && now === last;
      last = now;
      return isStill;
    },
    { what: 'the process waits' },
  );
  assert.ok((await residentBytes()) - before < 32 * MIB);
});

test('a channel is refused as the control plane refuses: no key, no sandbox, not running', async (t) => {
  const { url, sandboxId } = address;
  assert.equal((await refusalOf({ url, sandboxId })).status, 401);
  const { key: foreign } = await createKey(server.engine.folder, { namespace: 'elsewhere' });
  assert.deepEqual((await refusalOf({ url, sandboxId, key: foreign })).body.error.code, 'sandbox_not_found');
  const stopped = await started('stopped');
  const socket = await openWebSocket(t, stopped);
  await server.engine.client.stopSandbox(stopped.sandboxId);
  await waitUntil(() => socket.readyState === socket.CLOSED, { what: 'its channel ends' });
  const { status, body } = await refusalOf(stopped);
  assert.deepEqual([status, body.error.code], [409, 'sandbox_not_running']);
});

test('a long command shows its output while it runs', async (t) => {
  const channel = await open(t);
  const process = await channel.exec({ cmd: 'sh', args: ['-c', 'echo first; read x; echo second'] });
  const output = process.stdout[Symbol.asyncIterator]();
  assert.equal(Buffer.from((await output.next()).value ?? []).toString(), 'first\n');
  // It cannot have ended: it waits for this.
  await process.writeStdin(Buffer.from('go\n'));
  assert.equal(Buffer.from((await output.next()).value ?? []).toString(), 'second\n');
  assert.equal((await process.exited).code, 0);
});

test('files and trees of any size and name are uploaded', async (t) => {
  const channel = await open(t);
  const names = ['plain', 'with space', 'ünïcødé', '-rf'];
  await channel.files.mkdir('/tmp/upload/deep/er');
  for (const name of names) await channel.files.writeFile(`/tmp/upload/deep/er/${name}`, Buffer.from(name));
  const { stdout } = await shell(channel, 'cd /tmp/upload/deep/er && for f in *; do cat ./"$f"; echo; done');
  assert.deepEqual(stdout.trim().split('\n').toSorted(), names.toSorted());
});

test('every process is in the audit log of the organization', async (t) => {
  const channel = await open(t);
  await shell(channel, 'echo audited');
  const newest = async () => {
    const response = await fetch(`${server.url}/v1/events?event_type=exec_started&limit=1`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = (await response.json()) as { data: { payload: Record<string, unknown> }[] };
    return data[0]?.payload;
  };
  // It is written while the process runs.
  const command = 'sh -c echo audited';
  await waitUntil(async () => (await newest())?.['command'] === command, { what: 'the event is there' });
  const expected = { sandbox_id: address.sandboxId, sandbox_name: 'box', command, user: null, tty: false };
  assert.deepEqual(await newest(), expected);
});

test('a sandbox is idle when its channel is unused, and not before', async (t) => {
  const response = await fetch(`${server.url}/v1/sandboxes?start=true&wait_for=running&wait_timeout=60`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'idle',
      image: { type: 'oci', reference: BUSYBOX },
      lifecycle: { idle_timeout_secs: 2 },
    }),
  });
  const { id } = (await response.json()) as { id: string };
  const { process, socket } = await startBusy(t, id);
  // A process keeps it busy for longer than it may be idle; an open channel without one does not.
  const output = Buffer.concat(await Array.fromAsync(process.stdout)).toString();
  assert.equal(output, 'still here\n');
  await waitUntil(() => socket.readyState === socket.CLOSED, { what: 'it is stopped' });
  const endOf = async () => (await server.engine.client.getSandbox(id)).end;
  await waitUntil(async () => (await endOf()) !== null, { what: 'its end is written down' });
  assert.equal((await endOf())?.reason, 'idle_timeout');
});

/** On a machine that stands still for a while the sandbox may be idle for too long before there is a process: then once more. */
async function startBusy(t: TestContext, sandboxId: string) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const { channel, socket } = await openChannel(t, { ...address, sandboxId });
      const process = await channel.exec({ cmd: 'sh', args: ['-c', 'sleep 4; echo still here'] });
      return { process, socket };
    } catch (error) {
      if (attempt > 4) throw error;
      const path = `/v1/sandboxes/${sandboxId}/start?wait_for=running`;
      const headers = { authorization: `Bearer ${key}` };
      const isStarted = async () => (await fetch(server.url + path, { method: 'POST', headers })).ok;
      await waitUntil(isStarted, { what: 'the sandbox that was idle is started again' });
    }
  }
}
