import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { PlatformError, type Patch, type SandboxSpec } from '@svc/contract';
import { importChanged } from './image-fixture.ts';
import { CLASSES, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

/** A folder of the host that hostile images and volumes point at. */
let victim: string;
let engine: TestEngine;
before(async () => {
  victim = await mkdtemp(join(tmpdir(), 'svc-victim-'));
  await mkdir(join(victim, 'folder'));
  engine = await TestEngine.start({ args: ['--bind-root', join(victim, 'folder')] });
});
after(async () => {
  await engine.destroy();
  await rm(victim, { recursive: true });
});

beforeEach(async () => {
  await writeFile(join(victim, 'file'), 'untouched', { mode: 0o644 });
});

async function assertUntouched(): Promise<void> {
  assert.equal(readFileSync(join(victim, 'file'), 'utf8'), 'untouched');
  assert.deepEqual(readdirSync(victim).toSorted(), ['file', 'folder']);
  assert.deepEqual(readdirSync(join(victim, 'folder')), []);
  for (const path of ['file', 'folder']) assert.equal((await stat(join(victim, path))).uid, 0);
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  assert.ok(!mounts.includes(victim), 'nothing is mounted there');
}

/** Undefined when the start is refused, which is as good. */
async function startIfAllowed(
  isolation: (typeof CLASSES)[number],
  reference: string,
  more: Partial<SandboxSpec> = {},
): Promise<TestSandbox | undefined> {
  const spec = { image: { type: 'oci', reference }, ...more } as const;
  try {
    return new TestSandbox(engine, await engine.client.createSandbox({ isolation, spec, start: true }));
  } catch (error) {
    assert.ok(PlatformError.is(error) && error.code === 'start_failed', String(error));
    assert.ok(!error.message.includes(engine.folder), error.message);
    return undefined;
  }
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a working folder that names a descriptor does not lead out', async () => {
      // Where it leads nowhere, it cannot be made either.
      const folder = { runtime: { workdir: '/proc/self/fd/5' } };
      const sandbox = await startSandbox(engine, isolation, folder).catch((error: unknown) => {
        assert.match(String(error), /working directory \/proc\/self\/fd\/5/);
        return startSandbox(engine, isolation, {});
      });
      const root = (await sandbox.run({ cmd: '/bin/ls', args: ['/'], cwd: '/' })).stdout;
      const places = Array.from({ length: 24 }, (_, fd) => `/proc/self/fd/${fd}`);
      const seen: string[] = [];
      for (const cwd of [...places, '/proc/1/cwd', '/proc/1/root', '/proc/self/fd/7/../../../../..', null]) {
        const listing = { cmd: '/bin/ls', args: ['../../../../../../../..'], cwd };
        const ran = await sandbox.run(listing).catch((error: Error) => error);
        if (ran instanceof Error) assert.match(ran.message, /directory|denied|not permitted/i);
        else seen.push(ran.stdout);
      }
      for (const listing of seen) assert.equal(listing, root);
      await sandbox.remove();
    });

    test('system files that are links in the image are written inside the sandbox or not at all', async () => {
      await importChanged(engine, 'svc/linked', async (folder) => {
        await symlink(join(victim, 'file'), join(folder, 'etc/resolv.conf'));
        await symlink(join(victim, 'file'), join(folder, 'etc/hosts'));
        await symlink(`../../../../../..${victim}/file`, join(folder, 'etc/hostname'));
      });
      const sandbox = await startIfAllowed(isolation, 'svc/linked');
      await assertUntouched();
      await sandbox?.remove();
    });

    test('a mount on a link of the image stays inside the sandbox', async () => {
      await importChanged(engine, 'svc/mount-link', async (folder) => {
        await symlink(join(victim, 'folder'), join(folder, 'data'));
        await symlink(`../../../../../../../..${victim}/folder`, join(folder, 'climb'));
        await symlink('/proc/self/cwd', join(folder, 'proc-link'));
      });
      for (const guest of ['/data', '/climb', '/climb/below', '/proc-link/x']) {
        const sandbox = await startIfAllowed(isolation, 'svc/mount-link', {
          mounts: [{ type: 'tmpfs', guest }],
        });
        await sandbox?.sh(`echo written > ${guest}/file`);
        await assertUntouched();
        await sandbox?.remove();
      }
    });

    test('an image whose system folders are links does not make the host a part of the sandbox', async () => {
      for (const name of ['proc', 'dev', 'sys', '.svc', 'tmp']) {
        const reference = `svc/system-link${name.replace('.', '-')}`;
        await importChanged(engine, reference, async (folder) => {
          await rm(join(folder, name), { recursive: true, force: true });
          await symlink(join(victim, 'folder'), join(folder, name));
        });
        const sandbox = await startIfAllowed(isolation, reference);
        await assertUntouched();
        if (sandbox !== undefined) {
          assert.equal((await sandbox.sh('test -S /.svc/engine.sock && echo ours')).stdout, 'ours\n');
          assert.equal((await sandbox.sh(`ls ${victim}/file`)).stdout, '');
        }
        await sandbox?.remove();
      }
    });

    test('devices that are links in the image do not lift the masks', async () => {
      await importChanged(engine, 'svc/device-links', async (folder) => {
        for (const name of ['null', 'console', 'ptmx', 'tty', 'zero'])
          await symlink('/proc/sysrq-trigger', join(folder, 'dev', name));
        await mkdir(join(folder, 'dev/pts'));
        await symlink('/proc/kcore', join(folder, 'dev/pts/0'));
      });
      const sandbox = await startIfAllowed(isolation, 'svc/device-links');
      assert.ok(sandbox, 'the runtime makes its own /dev');
      const { stdout } = await sandbox.sh(
        'stat -c %F /dev/null; head -c 9 /proc/keys /proc/timer_list /proc/kcore 2>/dev/null | grep -v "==>"',
      );
      assert.equal(stdout.trim(), 'character special file');
      await sandbox.remove();
    });

    test('links that a guest leaves in a volume lead a later mount nowhere', async () => {
      const id = `links-${isolation}`;
      await engine.client.volumes.createVolume(id, 64);
      const volume = { type: 'named', name: id, guest: '/vol' } as const;
      const planter = await startSandbox(engine, isolation, { mounts: [volume] });
      await planter.sh(
        `ln -s ${victim}/folder /vol/sub; ln -s ../../../../../..${victim}/folder /vol/up; ln -s ${victim}/file /vol/file`,
      );
      await planter.remove();
      for (const guest of ['/vol/sub', '/vol/up', '/vol/up/deeper']) {
        const sandbox = await startIfAllowed(isolation, BUSYBOX, {
          mounts: [volume, { type: 'tmpfs', guest }],
        });
        await sandbox?.sh(`echo written > ${guest}/file`);
        await assertUntouched();
        await sandbox?.remove();
      }
      for (const path of ['/file', '/sub/file', '/up/file']) {
        await assert.rejects(
          engine.client.volumes.writeVolumeFile(id, path, oneChunk('written')).then(() => readVictim()),
          `writing ${path}`,
        );
      }
      await assertUntouched();
      await engine.client.volumes.removeVolume(id);
    });

    test('a bind of a link inside the allowed root, or of the host volume, does not leave it', async () => {
      await symlink(victim, join(victim, 'folder', 'out'));
      await symlink('/etc', join(victim, 'folder', 'etc'));
      for (const host of ['out', 'out/file', 'etc', 'etc/passwd', '../file', 'out/../file']) {
        const mounts = [{ type: 'bind', host: `${victim}/folder/${host}`, guest: '/bound' } as const];
        await assert.rejects(
          startSandbox(engine, isolation, { mounts }),
          { code: 'invalid_sandbox_config' },
          host,
        );
      }
      await rm(join(victim, 'folder', 'out'));
      await rm(join(victim, 'folder', 'etc'));
      await assertUntouched();
    });

    test('patches follow links of the image only inside the sandbox', async () => {
      await importChanged(engine, 'svc/patch-links', async (folder) => {
        await symlink(victim, join(folder, 'out'));
        await symlink(join(victim, 'file'), join(folder, 'etc/out'));
      });
      const patches: Patch[] = [
        { type: 'append', path: '/etc/out', content: 'written' },
        { type: 'text', path: '/out/new', content: 'written' },
        { type: 'mkdir', path: '/out/made' },
        { type: 'remove', path: '/out/file' },
        { type: 'symlink', target: '/etc/passwd', link: '/out/folder/link' },
      ];
      for (const patch of patches) {
        const image = { type: 'oci', reference: 'svc/patch-links' } as const;
        const spec = { image, patches: [patch] };
        const made = await engine.client
          .createSandbox({ isolation, spec, start: true })
          .catch((error: unknown) => {
            assert.ok(PlatformError.is(error) && error.code === 'invalid_sandbox_config', String(error));
          });
        await assertUntouched();
        if (made) await engine.client.removeSandbox(made.id);
      }
    });
  });
}

async function* oneChunk(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
}

/** Throws when the host's file was reached. */
function readVictim(): void {
  if (readFileSync(join(victim, 'file'), 'utf8') === 'untouched')
    throw new Error('written inside the volume');
}
