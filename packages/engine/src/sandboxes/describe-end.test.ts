import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProcessState } from '../guest/guest-messages.ts';
import { describeEnd } from './describe-end.ts';
import type { EngineRecord } from './record.ts';

// SAFETY of the type: the description reads nothing but these.
const record = {
  runtime: 'runc',
  spec: {
    image: { type: 'oci', reference: 'x' },
    resources: { memory_mib: 64 },
    lifecycle: { idle_timeout_secs: 9 },
  },
} as unknown as EngineRecord;

function main(end: Partial<ProcessState>): ReturnType<typeof describeEnd> {
  const state = {
    key: 'main',
    pid: 2,
    running: false,
    tty: false,
    code: null,
    signal: null,
    reason: null,
    stdoutBytes: 0,
    stderrBytes: 0,
  };
  return describeEnd({ by: 'main', state: { ...state, ...end } }, record);
}

test('an exit code is reported unchanged', () => {
  assert.deepEqual(main({ code: 3 }), {
    reason: 'exited',
    message: 'the main process exited with code 3',
    exitCode: 3,
  });
});

test('a signal is reported as 128 plus its number', () => {
  assert.equal(main({ signal: 15 }).exitCode, 143);
});

test('running out of memory names the limit and the field to raise', () => {
  assert.match(main({ signal: 9, reason: 'oom' }).message, /64 MiB.*resources\.memory_mib/);
  assert.equal(describeEnd({ by: 'death', outOfMemory: true }, record).reason, 'oom');
});

test('a timeout names its own field', () => {
  assert.match(
    describeEnd({ by: 'request', reason: 'idle_timeout' }, record).message,
    /9 s.*idle_timeout_secs/,
  );
});
