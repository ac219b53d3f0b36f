import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeFrame } from './channel.ts';
import { Engine, checkedBinary, run } from './engine.ts';

/** A short run by default; `make fuzz` sends more. */
const FRAMES = Number(process.env['SVC_FUZZ_FRAMES'] ?? 100_000);
const MS_PER_FRAME = 4;

test(`${FRAMES} random and mutated frames neither crash nor leak`, (t) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-fuzz-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const seed = process.env['SVC_FUZZ_SEED'] || String(randomInt(1, 2 ** 40));
  const fuzz = join(checkedBinary, '..', 'fuzz');
  const args = [
    '--nofile=4096:4096',
    'unshare',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount',
    '--net',
    '--ipc',
    fuzz,
    String(FRAMES),
    seed,
    root,
  ];
  const { status, stdout, stderr } = spawnSync('prlimit', args, {
    timeout: 120_000 + FRAMES * MS_PER_FRAME,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  assert.equal(status, 0, `seed ${seed}: ${stderr.slice(-4000)}`);
  const answers = Number(/(\d+) answers/.exec(stdout)?.[1]);
  t.diagnostic(`seed ${seed}: ${stdout.trim()}`);
  assert.ok(answers > FRAMES / 5, 'most frames must get through to a handler');
});

test('garbage over real sockets leaves svc-init serving others', async (t) => {
  const engine = await Engine.start(t);
  const good = await engine.session();
  const seed = randomInt(1, 2 ** 31 - 1);
  let state = seed;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => random(256)));
  for (let i = 0; i < 60; i++) {
    const bad = await engine.session();
    for (let j = 0; j < 30 && !bad.ended; j++) {
      const frame = encodeFrame(
        random(5),
        ['core.exec.stdin', 'core.fs.data', 'core.tcp.data', 'core.ping'][j % 4] as string,
        { data: bytes(50) },
      );
      if (random(3) > 0) frame[4 + random(frame.length - 4)] = random(256);
      bad.socket.write(random(10) === 0 ? bytes(1 + random(99)) : frame);
    }
    bad.socket.destroy();
  }
  const outcome = await run(good, 'echo', ['fine']).catch((error: unknown) => String(error));
  assert.ok(
    typeof outcome !== 'string' && outcome.stdout === 'fine\n',
    `seed ${seed}: ${JSON.stringify(outcome)}`,
  );
});
