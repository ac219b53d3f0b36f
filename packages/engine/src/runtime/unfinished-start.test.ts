import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@svc/contract/testing';
import { runc } from './runc.ts';
import { RUNTIMES } from './runtimes.ts';
import { nothingLeft } from '../testing/runtime-world.ts';
import { realWorld } from '../testing/real-world.ts';

const START_AND_DIE = fileURLToPath(new URL('../testing/start-and-die.ts', import.meta.url));

for (const { name, isolation, create } of RUNTIMES) {
  const moments = isolation === 'gvisor' ? [0, 20, 60, 120] : [0, 3, 6, 10, 15];

  test(`a start by ${name} that an engine left behind when it was killed is removed by the next one`, async (t) => {
    const world = await realWorld(create);
    t.after(() => world.close());
    for (const afterMs of moments) {
      const spec = await world.spec();
      const later = world.open();
      world.defer(() => later.remove(spec.handle));
      const args = [START_AND_DIE, name, world.folder, JSON.stringify(spec), String(afterMs)];
      const engine = spawn(process.execPath, args, { stdio: 'ignore' });
      const [, signal] = (await once(engine, 'exit')) as [number | null, string | null];
      assert.equal(signal, 'SIGKILL');
      assert.deepEqual(await later.list(), [spec.handle]);
      await later.remove(spec.handle);
      assert.deepEqual(await later.list(), []);
      await nothingLeft(world, spec, `killed after ${afterMs} ms`);
    }
  });
}

for (const { name, create } of RUNTIMES) {
  test(`a sandbox that ${name} started unseen is alive for the next engine, until it ends`, async (t) => {
    const world = await realWorld(create);
    t.after(() => world.close());
    const spec = await world.spec();
    const first = world.open();
    world.defer(() => first.remove(spec.handle));
    await first.start(spec, AbortSignal.timeout(100_000));
    const note = join(world.folder, 'bundles', spec.handle, 'init');
    // The state of an engine that was killed before it could record PID 1.
    rmSync(note);
    const next = world.open();
    assert.equal(await next.isAlive(spec.handle), true);
    assert.ok(existsSync(note), 'noted for the engine after that');
    assert.equal(await world.open().isAlive(spec.handle), true);

    rmSync(note);
    const pidFile = join(world.folder, 'bundles', spec.handle, 'pid');
    const pid = readFileSync(pidFile, 'utf8');
    // The id of PID 1 may belong to another process by now.
    writeFileSync(pidFile, String(process.pid));
    assert.equal(await world.open().isAlive(spec.handle), false);
    writeFileSync(pidFile, pid);
    await next.kill(spec.handle);
    assert.equal(await world.open().isAlive(spec.handle), false);
  });
}

for (const { name, program: path, create } of RUNTIMES) {
  test(`a sandbox that ${name} has started outlives a helper that is killed before the program ends`, async (t) => {
    const programs = await mkdtemp(join(tmpdir(), 'svc-slow-program-'));
    t.after(() => rm(programs, { recursive: true }));
    const [program, hasStarted, mayEnd] = ['program', 'started', 'end'].map((name) => join(programs, name));
    assert.ok(program !== undefined && hasStarted !== undefined && mayEnd !== undefined);
    const script = `#!/bin/sh\n${path} "$@" || exit\n: > ${hasStarted}\nuntil [ -e ${mayEnd} ]; do sleep 0.05; done\n`;
    await writeFile(program, script, { mode: 0o755 });
    const world = await realWorld((options) => create({ ...options, program }));
    t.after(() => world.close());
    const runtime = world.open();
    const spec = await world.spec();
    world.defer(() => runtime.remove(spec.handle));
    const starting = runtime.start(spec, AbortSignal.timeout(100_000));
    // Awaited below; until then a rejection must not count as unhandled.
    starting.catch(() => undefined);
    await waitUntil(() => existsSync(hasStarted), { what: 'the program has started the sandbox' });
    world.killHelpers();
    await writeFile(mayEnd, '');
    await starting;
    assert.equal(await runtime.isAlive(spec.handle), true);
    await runtime.remove(spec.handle);
    await nothingLeft(world, spec);
  });
}

test('a start whose helper is killed meanwhile fails with a reason and leaves nothing', async (t) => {
  const world = await realWorld(runc);
  t.after(() => world.close());
  const runtime = world.open();
  for (const afterMs of [0, 2, 5, 10]) {
    const spec = await world.spec();
    world.defer(() => runtime.remove(spec.handle));
    const starting = runtime.start(spec, AbortSignal.timeout(100_000)).then(
      () => 'started',
      (error: unknown) => String(error),
    );
    await setTimeout(afterMs);
    world.killHelpers();
    const outcome = await starting;
    if (outcome === 'started') await runtime.remove(spec.handle);
    else assert.match(outcome, /svc-host ended meanwhile/);
    assert.deepEqual(await runtime.list(), [], `killed after ${afterMs} ms`);
    await nothingLeft(world, spec, `killed after ${afterMs} ms`);
  }
});
