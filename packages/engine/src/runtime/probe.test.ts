import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Cgroups } from '../cgroup/cgroups.ts';
import { releaseDate } from './probe.ts';
import { runc } from './runc.ts';
import { runsc } from './runsc.ts';
import { INIT_PROGRAM, SandboxFiles } from '../testing/sandbox-files.ts';

test('the version of runsc tells when it was released; that of runc does not', () => {
  assert.deepEqual(releaseDate('release-20240729.0'), new Date('2024-07-29T00:00:00Z'));
  assert.deepEqual(releaseDate('0.0~20240729.0'), new Date('2024-07-29T00:00:00Z'));
  assert.equal(releaseDate('1.1.5+ds1'), null);
  assert.equal(releaseDate('0.0~20249999.0'), null);
});

for (const createRuntime of [runc, runsc]) {
  const { name } = createRuntime;
  test(`${name} that is not installed, or does not work, is reported as unusable with a reason`, async (t) => {
    const files = await SandboxFiles.create();
    t.after(() => files[Symbol.asyncDispose]());
    const options = (initProgram: string) => ({
      folder: join(files.folder, 'runtime'),
      cgroups: new Cgroups(),
      hostCalls: files.hostCalls,
      probe: {
        hostCalls: files.hostCalls,
        initProgram,
        folder: join(files.folder, 'probes'),
        idBase: 3_000_000,
      },
    });
    const deadline = AbortSignal.timeout(100_000);

    const missing = await createRuntime({ ...options(INIT_PROGRAM), program: '/nonexistent/runtime' }).probe(
      deadline,
    );
    assert.equal(missing.usable, false);
    assert.match(missing.reason, new RegExp(`install ${name}`));
    assert.equal(missing.version, null);

    await mkdir(join(files.folder, 'bin'));
    const text = join(files.folder, 'bin/init');
    await writeFile(text, 'this is no program');
    const broken = await createRuntime(options(text)).probe(deadline);
    assert.equal(broken.usable, false);
    assert.match(broken.reason, /exec|PID 1 ended/i);
    assert.match(broken.version ?? '', /\d/);

    const late = await createRuntime(options(INIT_PROGRAM)).probe(
      AbortSignal.abort(new DOMException('late', 'TimeoutError')),
    );
    assert.equal(late.usable, false);
    assert.match(late.reason, new RegExp(`^${name}.* did not start an empty sandbox in time`));

    assert.deepEqual(await readdir(join(files.folder, 'probes')), []);
    assert.deepEqual(await createRuntime(options(text)).list(), []);
  });
}
