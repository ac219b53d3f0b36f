import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, connect, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { GuestProbe } from './guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

let engine: TestEngine;
let probe: GuestProbe;
let everywhere: Server;
let abstract: Server;
const abstractName = `svc-escape-${process.pid}`;
before(async () => {
  [engine, probe] = await Promise.all([TestEngine.start(), GuestProbe.compile()]);
  everywhere = await listening({ port: 0, host: '::' });
  abstract = await listening({ path: `\0${abstractName}` });
});
after(async () => {
  everywhere.close();
  abstract.close();
  await engine.destroy();
});

async function listening(place: { port: number; host: string } | { path: string }): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('reached'));
  server.listen(place);
  await once(server, 'listening');
  return server;
}

async function reaches(place: { port: number; host: string } | { path: string }): Promise<boolean> {
  const socket: Socket = connect(place);
  socket.on('error', () => {});
  const [chunk] = await once(socket, 'data', { signal: AbortSignal.timeout(60_000) }).catch(() => ['']);
  socket.destroy();
  return String(chunk) === 'reached';
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    before(async () => {
      sandbox = await startSandbox(engine, isolation);
      await probe.putInto(sandbox);
    });
    after(() => sandbox.remove());

    async function connections(
      places: readonly (readonly [string, number])[],
    ): Promise<Record<string, string>> {
      return await probe.run(sandbox, ['connect', ...places.flatMap(([host, port]) => [host, String(port)])]);
    }

    test('nothing that listens on the host can be reached, by any of its addresses', async () => {
      const { port } = everywhere.address() as { port: number };
      const gateway = (
        await sandbox.sh("ip route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'")
      ).stdout.trim();
      const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      const addresses = [gateway, '127.0.0.1', '::1', '169.254.1.1', ...own.map(({ address }) => address)];
      assert.ok(await reaches({ port, host: '127.0.0.1' }), 'the host itself reaches its listener');
      const unscoped = [...new Set(addresses)].filter((address) => !address.startsWith('fe80'));
      const tried = await connections(unscoped.map((address) => [address, port] as const));
      assert.equal(Object.keys(tried).length, unscoped.length);
      assert.deepEqual(
        Object.entries(tried).filter(([, result]) => result === 'ok'),
        [],
      );
    });

    test('the gateway has no open port but the resolver', async () => {
      const { stdout } = await sandbox.sh("ip route | sed -n 's/default via \\([^ ]*\\).*/\\1/p'");
      const ports = [22, 25, 53, 80, 111, 443, 2375, 5555, 8080];
      const resolver = `${stdout.trim()}:53`;
      let tried: Record<string, string> = {};
      // The resolver answers sooner or later; nothing else ever does.
      await waitUntil(async () => {
        tried = await connections(ports.map((port) => [stdout.trim(), port] as const));
        const others = Object.keys(tried).filter((name) => name !== resolver);
        assert.deepEqual(
          others.filter((name) => tried[name] === 'ok'),
          [],
        );
        return tried[resolver] === 'ok';
      });
      assert.equal(Object.keys(tried).length, ports.length);
    });

    test('metadata, private and link-local addresses cannot be reached', async () => {
      const places = [
        '169.254.169.254',
        '169.254.170.2',
        '10.0.0.1',
        '172.16.0.1',
        '192.168.0.1',
        '100.64.0.1',
      ];
      const tried = await connections(
        [...places, 'fd00:ec2::254', '0.0.0.0'].map((host) => [host, 80] as const),
      );
      assert.equal(Object.keys(tried).length, 8);
      assert.ok(!Object.values(tried).includes('ok'), JSON.stringify(tried));
    });

    test('another sandbox cannot be reached, though it can reach itself', async () => {
      const other = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/nc', '-ll', '-p', '4711', '-e', 'echo', 'here'] },
      });
      const { address } = await engine.client.getSandbox(other.id);
      assert.ok(address);
      const reachesItself = async () =>
        (await other.sh(`nc ${address} 4711 < /dev/null`)).stdout === 'here\n';
      await waitUntil(reachesItself);
      assert.notEqual((await connections([[address, 4711]]))[`${address}:4711`], 'ok');
      await waitUntil(reachesItself, { what: 'it listens still' });
      await other.remove();
    });

    test('abstract sockets of the host are not there', async () => {
      assert.ok(await reaches({ path: `\0${abstractName}` }), 'the host itself reaches it');
      assert.deepEqual(await probe.run(sandbox, ['dial', `@${abstractName}`]), {
        [`@${abstractName}`]: 'ECONNREFUSED',
      });
    });

    test('no socket of the engine is there but that of the sandbox itself', async () => {
      const { stdout } = await sandbox.sh('find / -type s 2>/dev/null');
      assert.equal(stdout, '/.svc/engine.sock\n');
      for (const path of [`${engine.folder}/engine.sock`, '/var/lib/svc/engine.sock'])
        assert.equal((await probe.run(sandbox, ['dial', path]))[path], 'ENOENT');
    });

    test('/.svc cannot be changed', async () => {
      const { stdout } = await sandbox.sh(
        `for try in "touch /.svc/x" "rm -f /.svc/engine.sock" "mv /.svc/init /.svc/y" "chmod 777 /.svc" "mkdir /.svc/scripts/x" "rmdir /.svc/scripts" "mv /.svc /svc" "ln -sfn /tmp /.svc"; do
          $try 2>/dev/null && echo "$try"; done`,
      );
      assert.doesNotMatch(stdout, /touch|rm|mv|chmod|mkdir/);
      assert.equal((await sandbox.sh('ls /.svc')).stdout, 'engine.sock\nscripts\n');
    });

    test('a connection to the engine without the token is dropped and disturbs no other', async () => {
      const channel = await sandbox.connect();
      const process = await channel.exec({ cmd: '/bin/sh', args: ['-c', 'read line; echo "got $line"'] });
      const tried = await probe.run(sandbox, ['engine-socket', '/.svc/engine.sock']);
      assert.deepEqual(tried, {
        garbage: 'closed',
        'wrong token for control': 'closed',
        'wrong token for a session': 'closed',
        'half a preamble': 'closed',
      });
      await process.writeStdin(Buffer.from('it\n'));
      assert.equal((await process.exited).code, 0);
      channel.close();
      assert.equal((await engine.client.getSandbox(sandbox.id)).state, 'running');
    });

    test('a guest that holds every connection it gets neither blocks others nor fills the engine', async () => {
      const descriptors = () => readdirSync(`/proc/${engine.pid}/fd`).length;
      const before = descriptors();
      const channel = await sandbox.connect();
      const holders = await Promise.all(
        Array.from({ length: 3 }, () =>
          channel.exec({ cmd: '/bin/probe', args: ['hold', '/.svc/engine.sock', '2000'] }),
        ),
      );
      for (const { stdout } of holders) for await (const chunk of stdout) if (chunk.length > 0) break;
      const grown = descriptors() - before;
      assert.ok(grown < 400, `${grown} descriptors`);
      const other = await startSandbox(engine, 'container');
      assert.equal((await other.sh('echo fine')).stdout, 'fine\n');
      await other.remove();
      for (const holder of holders) await holder.kill();
      channel.close();
      await waitUntil(async () => (await sandbox.sh('echo again')).stdout === 'again\n');
    });
  });
}
