import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isErrno } from '@svc/contract/errno';
import { waitUntil } from '@svc/contract/testing';
import { GuestProbe } from '../engine/guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';

/**
 * The engine has one thread. A guest that keeps it busy gets the share of `engine/src/guest/token-buckets.ts`: the guest
 * waits, and its neighbours are served. Times are only ever used as upper bounds of what may have happened in them.
 */
const MIB = 1024 * 1024;
const PER_SECOND = 4 * MIB;
/** A burst, and what is under way in buffers. */
const AT_ONCE = 2 * MIB;
const MESSAGE_COST = 8 * 1024;
/** What came in one read is acted on, and paid for by waiting afterwards; no message is shorter than 40 bytes. */
const MESSAGES_OF_A_READ = (64 * 1024) / 40;
/** Twice a second the door opens for a burst of 64, while 128 more may wait at it. */
const DIALS_AT_ONCE = 64 + 128;
const DIALS_PER_SECOND = 2 * DIALS_AT_ONCE;

/** Like `yes`, in pieces so large that gVisor too could write more than its share. */
const FLOOD = ['/bin/dd', 'if=/dev/zero', 'bs=64k'];

let engine: TestEngine;
let noise: GuestProbe;
before(async () => {
  [engine, noise] = await Promise.all([TestEngine.start(), GuestProbe.compile('../security/noise.c')]);
});
after(async () => {
  await engine.destroy();
});

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a main command that writes without end waits for its share; the engine holds none of it, and others are served', async () => {
      const memory = residentBytes(engine.pid);
      const begun = performance.now();
      const sandboxes = [];
      for (let count = 0; count < 2; count++)
        sandboxes.push(await startSandbox(engine, isolation, { runtime: { cmd: FLOOD } }));
      for (const sandbox of sandboxes)
        await waitUntil(() => outputOf(sandbox).bytes > AT_ONCE, { what: 'it has written a lot' });
      await neighbourIsServed();
      for (const sandbox of sandboxes) {
        const { bytes } = outputOf(sandbox);
        const most = AT_ONCE + (PER_SECOND * (performance.now() - begun)) / 1000;
        assert.ok(bytes <= most, `${bytes} bytes were logged, ${Math.round(most)} may be`);
        assert.equal((await sandbox.sh('echo itself too')).stdout, 'itself too\n');
      }
      const grown = residentBytes(engine.pid) - memory;
      assert.ok(grown < 64 * MIB, `the engine has grown by ${Math.round(grown / MIB)} MiB`);
      for (const sandbox of sandboxes) await sandbox.remove();
    });

    test('output in pieces of one byte costs as many messages as its share allows', async () => {
      const place = '/bin/probe';
      const script = `until [ -x ${place} ]; do sleep 0.1; done; exec ${place} bytes 120`;
      const sandbox = await startSandbox(engine, isolation, { runtime: { cmd: ['/bin/sh', '-c', script] } });
      let begun = performance.now();
      await noise.putInto(sandbox);
      // Counts from the last moment at which there was nothing: the time until it begins is no share of its.
      const hasBegun = () => {
        const now = performance.now();
        if (outputOf(sandbox).lines > 0) return true;
        begun = now;
        return false;
      };
      await waitUntil(hasBegun, { what: 'a first line' });
      const atOnce = AT_ONCE / MESSAGE_COST + MESSAGES_OF_A_READ;
      // So many that what it may write at once is a small part: gVisor is not much faster than its share.
      await waitUntil(() => outputOf(sandbox).lines > 3 * atOnce, { what: 'many lines', timeoutMs: 100_000 });
      const { lines } = outputOf(sandbox);
      const most = atOnce + (PER_SECOND * (performance.now() - begun)) / 1000 / MESSAGE_COST;
      assert.ok(lines <= most, `${lines} lines were logged, ${Math.round(most)} may be`);
      await neighbourIsServed();
      await sandbox.remove();
    });

    test('a guest that dials the engine without end is refused by the kernel, and can be used all the same', async () => {
      const seconds = 5;
      const sandbox = await startSandbox(engine, isolation);
      await noise.putInto(sandbox);
      const channel = await sandbox.connect();
      const begun = performance.now();
      const dialling = channel.run({
        cmd: '/bin/probe',
        args: ['dial', String(seconds), '/.svc/engine.sock'],
      });
      await neighbourIsServed();
      const ran = await dialling;
      const most = DIALS_AT_ONCE + (DIALS_PER_SECOND * (performance.now() - begun)) / 1000;
      const [, done, refused] = /(\d+) done, (\d+) refused/.exec(Buffer.from(ran.stderr).toString()) ?? [];
      assert.ok(Number(done) <= most, `${done} were let in, ${Math.round(most)} may be; ${refused} refused`);
      assert.equal(ran.code, 0);
      channel.close();
      await waitUntil(async () => (await sandbox.sh('echo again')).stdout === 'again\n');
      await sandbox.remove();
    });
  });
}

/** Checks that a new sandbox starts and runs a command during an attack, and so does an old one. */
async function neighbourIsServed(): Promise<void> {
  const neighbour = await startSandbox(engine, 'container');
  for (let count = 0; count < 10; count++) assert.equal((await neighbour.sh('echo fine')).stdout, 'fine\n');
  await neighbour.remove();
}

/** What the log has taken of the main process so far; lines of files that are gone were long ones. */
function outputOf(sandbox: TestSandbox): { readonly bytes: number; readonly lines: number } {
  const folder = join(engine.folder, 'sandboxes', sandbox.handle, 'logs');
  const texts = readdirSync(folder).map((name) => readOrGone(join(folder, name)));
  const lines = texts.flatMap((text) => text.split('\n').slice(0, -1));
  const offsets = lines.map((line) => (JSON.parse(line) as { readonly o?: number }).o ?? 0);
  return { bytes: Math.max(0, ...offsets), lines: lines.length };
}

/** The log gives its oldest files up as it grows, also between two calls of ours. */
function readOrGone(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return '';
    throw error;
  }
}

function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return Number(kib) * 1024;
}
