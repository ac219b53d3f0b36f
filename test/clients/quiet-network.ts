import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const RELAY = join(import.meta.dirname, 'relay.mjs');

/**
 * A network namespace in which nothing changes, and which reaches these ports of this host's loopback as its own. A browser drops
 * its requests whenever an interface of its network comes or goes, and engines make and remove interfaces all the time.
 * @returns a program that runs its arguments there
 */
export async function startQuietNetwork(
  t: { after(end: () => Promise<void>): void },
  ports: readonly number[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-quiet-'));
  const script = `ip link set lo up && exec "$0" "$@"`;
  const relay = spawn('unshare', ['--net', 'sh', '-c', script, process.execPath, RELAY, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const servers: Server[] = [];
  t.after(async () => {
    relay.stdin.end();
    if (relay.exitCode === null && relay.signalCode === null) await once(relay, 'exit');
    for (const server of servers) server.close();
    await rm(folder, { recursive: true, force: true });
  });
  for (const port of ports) servers.push(await passOn(join(folder, String(port)), port));
  const ready = countLines(relay.stdout, ports.length);
  relay.stdin.write(ports.map((port) => `${port}\n`).join(''));
  await ready;
  const enter = join(folder, 'enter');
  await writeFile(enter, `#!/bin/sh\nexec nsenter --net=/proc/${relay.pid}/ns/net "$@"\n`, { mode: 0o755 });
  return enter;
}

async function passOn(path: string, port: number): Promise<Server> {
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    tie(near, far);
    tie(far, near);
    near.pipe(far).pipe(near);
  });
  server.listen(path);
  await once(server, 'listening');
  return server;
}

function tie(one: Socket, other: Socket): void {
  one.on('error', () => other.destroy());
  one.on('close', () => other.destroy());
}

async function countLines(output: AsyncIterable<Buffer>, count: number): Promise<void> {
  let lines = 0;
  for await (const chunk of output) {
    lines += chunk.toString().split('\n').length - 1;
    if (lines >= count) return;
  }
  throw new Error('the relay ended');
}
