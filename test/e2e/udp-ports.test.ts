import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { resolve } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { openUdp } from '../../packages/server/src/testing/udp.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

const run = promisify(execFile);
const GUEST_PORT = 53;
/** Sends back what it was sent, to each sender with the port that it was heard from. */
const ECHO = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", ${GUEST_PORT}))
while True:
    data, sender = s.recvfrom(65535)
    s.sendto(b"%d" % sender[1] if data == b"who" else data, sender)
`;
/** Asks from another host until it is answered. */
const ASK = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for _ in range(30):
    s.sendto(b"from afar", (sys.argv[1], int(sys.argv[2])))
    try:
        print(s.recv(65535).decode())
        break
    except socket.timeout:
        pass
`;

let server: TestServer;
let client: Client;
/** Of this host, on a link to a namespace that plays another host. */
const ADDRESS = `198.18.${process.pid % 256}.1`;
const NAMESPACE = `svc-udp-${process.pid}`;
const LINK = `su${process.pid}`;

before(async () => {
  server = await TestServer.start({ args: ['--dev', '--publish-address', ADDRESS] });
  await importPython(server.engine);
  client = new Client({ apiUrl: server.url });
  await run('ip', ['netns', 'add', NAMESPACE]);
  await run('ip', ['link', 'add', LINK, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', NAMESPACE]);
  await run('ip', ['addr', 'add', `${ADDRESS}/24`, 'dev', LINK]);
  await run('ip', ['link', 'set', LINK, 'up']);
  await run('ip', ['-n', NAMESPACE, 'addr', 'add', ADDRESS.replace(/1$/, '2/24'), 'dev', 'eth0']);
  await run('ip', ['-n', NAMESPACE, 'link', 'set', 'eth0', 'up']);
});
after(async () => {
  await run('ip', ['link', 'del', LINK]).catch(() => undefined);
  await run('ip', ['netns', 'del', NAMESPACE]).catch(() => undefined);
  await server.destroy();
});

for (const isolation of ['container', 'gvisor'] as const) {
  describe(`published UDP ports on ${isolation}`, { concurrency: false }, () => {
    /** For rules of server and CLI, which do not depend on the class. */
    const testOnce = isolation === 'container' ? test : () => undefined;
    let box: Sandbox;
    let port = 0;
    before(async () => {
      port = await freePort('udp');
      const far = { guest_port: GUEST_PORT, host_port: port, host_bind: ADDRESS, protocol: 'udp' } as const;
      const near = { guest_port: GUEST_PORT, host_port: port, protocol: 'udp' } as const;
      box = await Sandbox.create({
        client,
        name: `udp-${isolation}`,
        image: 'python',
        isolation,
        network: { ports: [near, far] },
      });
      await box.commands.startDetached('python3', ['-c', ECHO]);
    });
    after(() => box.remove());

    test('many clients are distinguished, and each gets its answers', async (t) => {
      const sockets = await Promise.all(Array.from({ length: 30 }, () => openUdp(t)));
      const who = await Promise.all(sockets.map((socket) => askWho(socket, port)));
      assert.equal(new Set(who).size, sockets.length);
      await Promise.all(sockets.map((socket, index) => ask(socket, port, Buffer.from(`client ${index}`))));
    });

    test('datagrams beyond the MTU arrive whole, up to the largest', async (t) => {
      const socket = await openUdp(t);
      for (const length of [1, 9000, 65_507]) await ask(socket, port, Buffer.alloc(length, 'svc'));
    });

    testOnce('another host is answered on the address that the operator allows', async () => {
      const args = ['netns', 'exec', NAMESPACE, 'python3', '-c', ASK, ADDRESS, String(port)];
      assert.equal((await run('ip', args)).stdout, 'from afar\n');
    });

    testOnce('a port that is taken is refused by its number', async () => {
      const ports = [{ guest_port: 1, host_port: port, protocol: 'udp' as const }];
      const taken = Sandbox.create({ client, name: 'taken', image: 'python', network: { ports } });
      await assert.rejects(taken, (error) => {
        assert.ok(SvcError.is(error, 'invalid_sandbox_config') && error.status === 409, String(error));
        assert.match(error.message, new RegExp(`Port ${port} of 127.0.0.1 is in use`));
        return true;
      });
    });

    testOnce('svc run publishes, and svc port shows it', async (t) => {
      const free = await freePort('udp');
      const name = `cli-${isolation}`;
      const publish = `${free}:${GUEST_PORT}/udp`;
      await svc(
        'run',
        '-d',
        '--name',
        name,
        '--isolation',
        isolation,
        '-p',
        publish,
        'python',
        'python3',
        '-c',
        ECHO,
      );
      assert.equal(await svc('port', name), `53/udp -> 127.0.0.1:${free}\n`);
      await ask(await openUdp(t), free, Buffer.from('hello'));
      await svc('rm', '--force', name);
      await waitUntil(() => isFree(free), { what: 'the port is free' });
    });

    test('a published port survives the server, and is closed while the sandbox is stopped', async (t) => {
      const socket = await openUdp(t);
      await ask(socket, port, Buffer.from('before'));
      await server.kill();
      await server.launch();
      client = new Client({ apiUrl: server.url });
      box = await Sandbox.connect(box.name, { client });
      await ask(socket, port, Buffer.from('after'));
      await box.stop();
      await waitUntil(() => isFree(port), { what: 'the port is free' });
      await box.start();
      await box.commands.startDetached('python3', ['-c', ECHO]);
      await ask(socket, port, Buffer.from('again'));
    });
  });
}

async function svc(...args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', SVC_API_URL: server.url };
  return (await run(resolve(import.meta.dirname, '../../svc'), args, { env })).stdout;
}

async function isFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}

async function askWho(socket: Socket, port: number): Promise<string> {
  return String(await ask(socket, port, Buffer.from('who'), (answer) => /^\d+$/.test(String(answer))));
}

/** Sends until the answer comes, which is the same datagram unless it is told otherwise: any may be lost or late. */
async function ask(
  socket: Socket,
  port: number,
  datagram: Buffer,
  isAnswer = (answer: Buffer) => answer.equals(datagram),
): Promise<Buffer> {
  const answers: Buffer[] = [];
  const take = (received: Buffer) => {
    if (isAnswer(received)) answers.push(received);
  };
  socket.on('message', take);
  let sentAt = Number.NEGATIVE_INFINITY;
  await waitUntil(
    () => {
      if (answers.length === 0 && performance.now() - sentAt > 1000) {
        socket.send(datagram, port, '127.0.0.1');
        sentAt = performance.now();
      }
      return answers.length > 0;
    },
    { what: 'an answer', timeoutMs: 60_000 },
  );
  socket.off('message', take);
  // The wait above saw one.
  return answers[0] as Buffer;
}
