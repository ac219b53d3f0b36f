import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RuntimeSpec } from './runtime.ts';
import { lastComplaint, startFailure } from './start-failure.ts';

const LOG = [
  '{"level":"warning","msg":"cgroup v1","time":"2026-01-01T00:00:00Z"}',
  '{"level":"error","msg":"first","time":"2026-01-01T00:00:00Z"}',
  '{"level":"error","msg":"runc run failed: unable to start container process","time":"2026-01-01T00:00:00Z"}',
  '{"level":"info","msg":"bye"}',
  '{"level":"error","msg":"cut sho',
].join('\n');

test('the reason is the last complete error of the log', () => {
  assert.equal(lastComplaint(LOG), 'runc run failed: unable to start container process');
});

test('a log without errors, or without sense, gives no reason', () => {
  assert.equal(lastComplaint(''), undefined);
  assert.equal(lastComplaint('{"level":"info","msg":"x"}\nnull\n7\n{"level":"error"}\nnot json'), undefined);
});

test('entries that follow each other without a line break are read separately', () => {
  const log = '{"level":"info","msg":"begins"}{"level":"error","msg":"no such device"}';
  assert.equal(lastComplaint(log), 'no such device');
});

test('an error contains neither the token nor the configuration that the runtime quotes', () => {
  const initToken = 'ab'.repeat(32);
  // Only the fields that are read.
  const spec = {
    initToken,
    rootfs: '/data/root',
    guestFolder: '/run/guest',
    slot: { userNamespace: '/run/user', networkNamespace: '/run/net' },
    mounts: [],
  } as unknown as RuntimeSpec;
  const quoted = [
    `starting container: {"ociVersion":"1.0.2","process":{"env":["SVC_TOKEN=${initToken}","A=secret"]}}`,
    `starting container: &{Version:1.0.2 Process:0xc0 Env:[SVC_TOKEN=${initToken} A=secret]}`,
    `starting container: environment SVC_TOKEN=${initToken} is bad\nA=secret`,
  ];
  for (const msg of quoted) {
    const error = startFailure('runsc', spec, { exitCode: 1, log: JSON.stringify({ level: 'error', msg }) });
    const shown = JSON.stringify([error.message, error.details]);
    assert.match(shown, /starting container/);
    assert.doesNotMatch(`${shown} ${String(error.cause)}`, new RegExp(initToken));
    assert.doesNotMatch(shown, /secret|ociVersion|Version:/);
  }
  const plain = 'error mounting "/data/root/x" to rootfs at "/x": [not a document] no such file';
  const { message } = startFailure('runc', spec, {
    exitCode: 1,
    log: JSON.stringify({ level: 'error', msg: plain }),
  });
  assert.match(message, /"\(root\)\/x" to rootfs at "\/x": \[not a document\] no such file/);
});
