import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { importChanged } from '../engine/image-fixture.ts';
import { CLASSES, recordsOf, specOf, startSandbox, TestSandbox } from '../engine/sandbox-fixture.ts';
import { claimAddressPool, TestEngine } from '../engine/start-engine.ts';

/**
 * What the next tenant finds of the one before it: in a sandbox that waited, in the place that another has left, and in one that begins
 * with a snapshot, which carries files and nothing else.
 */
const IMAGE = 'svc/identities';
const POOL = 2;
const SECRET = 'the-first-tenants-secret';
/** Files that make a machine itself; an image, or a tenant, may have them. */
const IDENTITIES = {
  'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
  'var/lib/dbus/machine-id': '0123456789abcdef0123456789abcdef\n',
  'var/lib/systemd/random-seed': 'seed of the image',
  'etc/ssh/ssh_host_ed25519_key': 'key of the image',
};

/** Everything of a sandbox that could tell of another. */
const LOOK = [
  "tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/1/cmdline; env; hostname; cat /etc/hosts /etc/hostname",
  'find /tmp /var /run /root /home /dev/shm /dev/mqueue /.svc 2>/dev/null',
  'cat /tmp/* /dev/shm/* /root/* 2>/dev/null',
  'cat /proc/net/unix /proc/net/tcp /proc/net/arp /proc/sysvipc/shm /proc/keys /proc/mounts 2>/dev/null',
  "ps -o args; for pid in /proc/[0-9]*; do tr '\\0' '\\n' < $pid/environ; done 2>/dev/null",
].join('; ');
const RANDOM =
  'cat /proc/sys/kernel/random/uuid; head -c 32 /dev/urandom | base64; head -c 32 /dev/random | base64; od -An -tx1 -N 400 /proc/self/auxv | tr -d "\\n"';

let engine: TestEngine;
before(async () => {
  // So few addresses that they are soon given out again, and ids of the host with them.
  const pool = (await claimAddressPool()).replace(/\d+$/, '28');
  const warm = CLASSES.flatMap((isolation) => ['--warm', `${IMAGE}=${POOL}@${isolation}`]);
  engine = await TestEngine.start({ args: ['--address-pool', pool, '--prepared-slots', '1', ...warm] });
  await importChanged(engine, IMAGE, async (folder) => {
    for (const [path, content] of Object.entries(IDENTITIES)) {
      await mkdir(join(folder, path, '..'), { recursive: true });
      await writeFile(join(folder, path), content);
    }
  });
});
after(() => engine.destroy());

for (const isolation of CLASSES) {
  suite(`on class ${isolation}`, { concurrency: false }, () => {
    test('a sandbox that waited has randomness of its own, and nothing from its time in the pool', async () => {
      const prepared = await untilFull(isolation);
      const two = await Promise.all([taken(isolation), taken(isolation)]);
      for (const sandbox of two) assert.ok(prepared.includes(sandbox.handle), 'it had waited');
      const [one = '', other = ''] = await Promise.all(
        two.map(async (each) => (await each.sh(RANDOM)).stdout),
      );
      assert.ok(one.length > 100);
      for (const [index, line] of one.split('\n').slice(0, 3).entries())
        assert.notEqual(line, other.split('\n')[index], 'the same randomness twice');
      for (const sandbox of two) {
        assert.doesNotMatch((await sandbox.sh(LOOK)).stdout, new RegExp(tokensOf().join('|')));
        await sandbox.remove();
      }
    });

    test('a sandbox that reuses an address, a user id or a folder finds no data of the last one', async () => {
      const places = new Set<string>();
      let again = 0;
      for (let count = 0; count < 30 && again < 2; count++) {
        const sandbox = await taken(isolation);
        const { stdout } = await sandbox.sh(LOOK);
        assert.ok(
          !stdout.includes(SECRET),
          stdout.split('\n').find((line) => line.includes(SECRET)),
        );
        const place = sandbox.view.address ?? 'none';
        again += places.has(place) ? 1 : 0;
        places.add(place);
        await leaveSecrets(sandbox);
        await sandbox.remove();
      }
      assert.equal(again, 2, `no place was used twice: ${[...places].join()}`);
    });

    test('a snapshot carries files, and neither processes, environment, memory, names nor tokens', async () => {
      const origin = await startSandbox(engine, isolation, {
        ...specOf({ image: { type: 'oci', reference: IMAGE } }),
        env: [{ key: 'SECRET', value: SECRET }],
        runtime: { hostname: 'first-tenant', scripts: { hers: `#!/bin/sh\n# ${SECRET}\n` } },
      });
      await origin.sh('echo kept > /root/kept; cp /proc/sys/kernel/random/uuid /etc/machine-id');
      await origin.sh(`echo ${SECRET} > /dev/shm/secret; sleep 1000 & echo ${SECRET} > /.svc/x`);
      const tokens = tokensOf();
      await engine.client.stopSandbox(origin.id);
      const snapshot = await engine.client.createSnapshot({ id: `of-${isolation}`, sandboxId: origin.id });
      await engine.client.startSandbox(origin.id);
      const request = { snapshot: snapshot.id, isolation, start: true };
      const spec = specOf({ image: { type: 'oci', reference: IMAGE } });
      const copy = new TestSandbox(engine, await engine.client.createSandbox({ ...request, spec }));
      const { stdout } = await copy.sh(LOOK);
      assert.match(stdout, /kept/, 'files are carried');
      for (const foreign of [SECRET, 'first-tenant', 'sleep 1000', origin.view.address ?? 'none', ...tokens])
        assert.ok(!stdout.includes(foreign), `${foreign}: ${stdout}`);
      await Promise.all([copy.remove(), origin.remove()]);
      await engine.client.removeSnapshot(snapshot.id);
    });
  });
}

async function taken(isolation: Isolation): Promise<TestSandbox> {
  return await startSandbox(engine, isolation, { image: { type: 'oci', reference: IMAGE } });
}

async function leaveSecrets(sandbox: TestSandbox): Promise<void> {
  const places = ['/tmp/x', '/var/x', '/run/x', '/root/x', '/home/user/x', '/dev/shm/x', '/etc/hosts'];
  await sandbox.sh(`for path in ${places.join(' ')}; do echo ${SECRET} >> $path; done`);
  await sandbox.sh(`hostname ${SECRET}; (nc -l -p 4444 -e sleep 1000; exec -a ${SECRET} sleep 1000) &`);
}

function tokensOf(): readonly string[] {
  return recordsOf(engine).flatMap(({ run }) => (run === null ? [] : [run.token]));
}

async function untilFull(isolation: Isolation): Promise<readonly string[]> {
  const waiting = () =>
    recordsOf(engine).filter(
      ({ id, state, isolation: own }) => id === null && state === 'running' && own === isolation,
    );
  await waitUntil(() => waiting().length === POOL, { what: 'the pool is full' });
  return waiting().map(({ handle }) => handle);
}
