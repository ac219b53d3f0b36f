import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { SandboxSpec } from '@svc/contract';
import { missingAdvisories } from '../../packages/engine/src/runtime/advisories.ts';
import { RUNTIMES, runtimeNamed, runtimePrograms } from '../../packages/engine/src/runtime/runtimes.ts';
import { environmentOf } from '../engine/each-runtime.ts';
import { startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';

/**
 * A sandbox starts with a mount below a volume, and another that has the volume too swaps a folder there for a link, after the engine
 * has looked and before the runtime does. At that moment each time: the runtime's program is a script that swaps and then executes it.
 */
const programs = runtimePrograms(process.env);
const BUILDS = [
  ...RUNTIMES.map(({ name }) => ({ build: name, name, program: programs[name] })),
  { build: 'runc of the system', name: 'runc', program: '/usr/sbin/runc' },
] as const;
const MASKED = ['/proc/timer_list', '/proc/interrupts', '/proc/partitions'];
const SETTINGS = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/panic'];

for (const { build, name, program } of BUILDS) {
  const { isolation, variable } = runtimeNamed(name);

  suite(`on ${build}`, { concurrency: false }, () => {
    let engine: TestEngine;
    let folder: string;
    let attacker: TestSandbox;
    const volumes = { shared: 'shared', second: 'second' };
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'svc-swapped-'));
      await mkdir(join(folder, 'open'));
      for (const path of [folder, join(folder, 'open')]) await chmod(path, 0o1777);
      const swapper = join(folder, 'swapper');
      await writeFile(swapper, swapperScript(program, join(folder, 'target')), { mode: 0o755 });
      engine = await TestEngine.start({ env: { ...environmentOf(name), [variable]: swapper } });
      for (const id of Object.values(volumes)) await engine.client.volumes.createVolume(id, 16);
      attacker = await startSandbox(engine, isolation, { mounts: mountsWith('/two') }, { volumes });
      await attacker.sh('cd /two && ln -s /proc/sys/kernel/core_pattern null && ln -s /proc/kcore zero');
    });
    after(async () => {
      await engine.destroy();
      await rm(folder, { recursive: true });
    });

    test('a mount below a shared volume works', async () => {
      const outcome = await started('/one/place/below', '');
      if (outcome instanceof PlatformError) return checkLackingFixes(outcome);
      assert.match((await outcome.sh('ls -l /one/place/below')).stdout, /core_pattern/);
      await outcome.remove();
    });

    test('a volume whose link points at the devices harms no device', async () => {
      const before = SETTINGS.map((path) => readFileSync(path, 'utf8'));
      const outcome = await started('/one/place', '../dev');
      // In gVisor it lands there, in a sandbox that shares the volume with the attacker, and on nothing of the host.
      if (isolation === 'container') assert.ok(outcome instanceof PlatformError, 'it was started');
      if (!(outcome instanceof PlatformError)) {
        for (const path of MASKED)
          assert.equal((await outcome.sh(`cat ${path} 2>/dev/null | head -c 99`)).stdout, '');
        await outcome.remove();
      } else assert.equal(outcome.code, 'start_failed');
      assert.deepEqual(
        SETTINGS.map((path) => readFileSync(path, 'utf8')),
        before,
      );
    });

    if (isolation === 'container')
      test('a volume that is led elsewhere in the sandbox is refused, too', async () => {
        const outcome = await started('/one/place', '../etc');
        assert.ok(outcome instanceof PlatformError, 'it was started');
        assert.match(outcome.message, /landed elsewhere|lacks the fixes/);
      });

    test('no folder is made on the host', async () => {
      const outcome = await started('/one/place/made', join(folder, 'open'));
      assert.deepEqual(await readdir(join(folder, 'open')), []);
      if (!(outcome instanceof PlatformError)) await outcome.remove();
    });

    /** Starts a sandbox with the second volume at `guest`; `/one/place` becomes a link to `target`, unless that is empty. */
    async function started(guest: string, target: string): Promise<TestSandbox | PlatformError> {
      await attacker.sh('cd /one && rm -rf place && mkdir -p place');
      await writeFile(join(folder, 'target'), target);
      try {
        return await startSandbox(engine, isolation, { mounts: mountsWith(guest) }, { volumes });
      } catch (error) {
        assert.ok(error instanceof PlatformError, String(error));
        assert.doesNotMatch(error.message, /exit code 97/, 'the attack itself failed');
        return error;
      } finally {
        await rm(join(folder, 'target'));
      }
    }

    async function checkLackingFixes(error: PlatformError): Promise<void> {
      const { runtimes } = await engine.client.capabilities();
      const version = runtimes.find((each) => each.name === 'runc')?.version ?? null;
      assert.notDeepEqual(missingAdvisories('runc', version), [], error.message);
      assert.match(error.message, /lacks the fixes of CVE-2.*make runc/);
    }
  });
}

function mountsWith(guest: string): NonNullable<SandboxSpec['mounts']> {
  return [
    { type: 'named', name: 'shared', guest: '/one' },
    { type: 'named', name: 'second', guest },
  ];
}

/** Finds the volume by the configuration that the runtime is given. Only users of the sandbox can write there. */
function swapperScript(program: string, targetFile: string): string {
  return `#!/bin/sh
bundle= previous=
for argument; do
  case $previous in --bundle|-bundle) bundle=$argument ;; esac
  previous=$argument
done
if [ -n "$bundle" ] && [ -s ${targetFile} ]; then
  volume=$(grep -o '"destination":"/one","type":"bind","source":"[^"]*"' "$bundle/config.json" | cut -d '"' -f 12)
  as_guest="setpriv --clear-groups --reuid $(stat -c %u "$volume") --regid $(stat -c %g "$volume")"
  $as_guest rm -r "$volume/place" && $as_guest ln -s "$(cat ${targetFile})" "$volume/place" || exit 97
fi
exec ${program} "$@"
`;
}
