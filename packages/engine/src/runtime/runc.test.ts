import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { runc } from './runc.ts';
import { runtimeSuite } from './runtime.suite.ts';
import { nothingLeft } from '../testing/runtime-world.ts';
import { realWorld } from '../testing/real-world.ts';

runtimeSuite('runc', () => realWorld(runc));

test('a mount that a killed runc left among its records does not keep the sandbox from being removed', async (t) => {
  const world = await realWorld(runc);
  t.after(() => world.close());
  const runtime = world.open();
  const spec = await world.spec();
  world.defer(() => runtime.remove(spec.handle));
  await runtime.start(spec, AbortSignal.timeout(100_000));

  const left = join(world.folder, 'bundles', spec.handle, 'state/runc.left');
  await writeFile(left, '');
  execFileSync('mount', ['--bind', '/bin/true', left]);
  await runtime.remove(spec.handle);
  await nothingLeft(world, spec);
});
