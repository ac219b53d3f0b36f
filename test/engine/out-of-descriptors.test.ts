import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { Isolation } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { CLASSES, recordsOf, specOf, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

/** How many more descriptors the engine may open: from none at all to almost enough for a create. */
const SPARE_DESCRIPTORS = [0, 2, 4, 6, 8, 12];
/** Errors that a caller may get: each is 503 and transient. */
const RETRYABLE = new Set(['unavailable', 'orchestrator_unreachable']);

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
});

describe('an engine that may open no more files', { concurrency: false }, () => {
  for (const isolation of CLASSES) {
    test(`refuses creates and execs of class ${isolation} for the moment, and recovers`, async () => {
      const sandbox = await startSandbox(engine, isolation);
      const { pid } = engine;
      const limit = openFilesLimit(pid);
      const seen: unknown[] = [];
      for (const spare of SPARE_DESCRIPTORS) {
        limitOpenFiles(pid, readdirSync(`/proc/${pid}/fd`).length + spare);
        const outcomes = await Promise.allSettled([
          ...[1, 2].map(async () => (await startSandbox(engine, isolation)).remove()),
          ...[1, 2].map(() => sandbox.sh('echo here')),
          createStopped(isolation).then((id) => engine.client.removeSandbox(id)),
        ]);
        limitOpenFiles(pid, limit);
        seen.push(...outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
      }
      assert.equal(engine.pid, pid, 'the engine was replaced');
      assert.notEqual(seen.length, 0, 'the limit was never felt');
      assert.deepEqual(
        seen.filter((error) => !isRetryable(error)),
        [],
      );
      await expectWhole(sandbox, isolation);
    });
  }
});

async function createStopped(isolation: Isolation): Promise<string> {
  const { id } = await engine.client.createSandbox({ isolation, start: false, spec: specOf() });
  return id;
}

/** What was there runs on, what is new starts, and what was refused left nothing behind. */
async function expectWhole(sandbox: TestSandbox, isolation: Isolation): Promise<void> {
  assert.equal((await sandbox.sh('echo still here')).stdout, 'still here\n');
  const another = await startSandbox(engine, isolation);
  assert.equal((await another.sh('echo new')).stdout, 'new\n');
  for (const { id } of await engine.client.listSandboxes()) await engine.client.removeSandbox(id);
  // A create whose caller was cut off is undone when it is over.
  await waitUntil(() => recordsOf(engine).length === 0, { what: 'no record is left' });
}

function isRetryable(error: unknown): boolean {
  return error instanceof PlatformError && RETRYABLE.has(error.code);
}

function openFilesLimit(pid: number): string {
  const line = readFileSync(`/proc/${pid}/limits`, 'utf8')
    .split('\n')
    .find((each) => each.startsWith('Max open files'));
  return line?.split(/\s+/)[3] ?? '';
}

/** The soft limit, which counts; the engine runs on. */
function limitOpenFiles(pid: number, limit: number | string): void {
  execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${limit}:`]);
}
