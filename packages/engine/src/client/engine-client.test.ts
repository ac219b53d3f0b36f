import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { EngineClient } from './engine-client.ts';

const SERVER = `
  const { createServer } = require('node:http');
  const [path, name] = process.argv.slice(1);
  let asked = 0;
  createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify({ name, asked: (asked += 1) })));
  })
    .on('upgrade', (request, socket) => {
      socket.end('HTTP/1.1 101 Switching Protocols\\r\\nconnection: Upgrade\\r\\nupgrade: svc-channel\\r\\n\\r\\n' + name);
    })
    .listen(path, () => process.stdout.write('listening'));
`;

async function serve(t: TestContext, path: string, name: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', SERVER, path, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await once(child.stdout, 'data');
  return child;
}

/** Without letting this process notice what became of its connections. */
function killAndWait({ pid = 0 }: ChildProcess): void {
  process.kill(pid, 'SIGKILL');
  // Its connections are open until the last of its threads has ended.
  const isGone = () =>
    readdirSync(`/proc/${pid}/task`).length === 1 &&
    /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  for (let count = 0; count < 30_000 && !isGone(); count += 1) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
  }
  assert.ok(isGone());
}

/** A client that has used the first engine and has not seen yet that the second replaced it. */
async function replacedEngine(t: TestContext): Promise<EngineClient> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-client-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'engine.sock');
  const first = await serve(t, path, 'first');
  await serve(t, join(folder, 'next.sock'), 'second');
  const client = new EngineClient({ socketPath: path });
  t.after(() => client.close());
  assert.deepEqual(await client.capabilities(), { name: 'first', asked: 1 });
  killAndWait(first);
  renameSync(join(folder, 'next.sock'), path);
  return client;
}

test('a call right after the engine was replaced reaches the new one, once', async (t) => {
  const client = await replacedEngine(t);
  assert.deepEqual(await client.startSandbox('a'), { name: 'second', asked: 1 });
});

test('an upgrade right after the engine was replaced reaches the new one', async (t) => {
  const client = await replacedEngine(t);
  const socket = await client.openChannel('a');
  t.after(() => socket.destroy());
  assert.equal(Buffer.concat(await Array.fromAsync(socket)).toString(), 'second');
});

test('when the engine hangs, calls and streams fail at once, until it is back', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-client-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'engine.sock');
  const engine = await serve(t, path, 'first');
  const client = new EngineClient({ socketPath: path });
  t.after(() => client.close());
  await client.capabilities();
  engine.kill('SIGSTOP');
  const hanging = client.capabilities();
  const pulse = client.pulse();
  client.setAbsence('it was stopped by a signal');
  const hangs = { code: 'orchestrator_unreachable' };
  await assert.rejects(hanging, hangs);
  await assert.rejects(client.capabilities(), {
    ...hangs,
    message: /the engine hangs: it was/,
  });
  await assert.rejects(client.openChannel('a'), hangs);
  engine.kill('SIGCONT');
  await pulse;
  client.setAbsence(null);
  assert.partialDeepStrictEqual(await client.capabilities(), { name: 'first' });
});

test('an engine that is away is an error that says how to start it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-client-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const client = new EngineClient({ socketPath: join(folder, 'engine.sock') });
  await assert.rejects(client.capabilities(), {
    code: 'orchestrator_unreachable',
    message: /svc engine start/,
  });
});
