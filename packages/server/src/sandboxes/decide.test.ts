import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide } from './decide.ts';

const states = ['created', 'starting', 'running', 'stopping', 'stopped', 'failed'] as const;
const outcome = (
  desired: 'running' | 'restarted' | 'stopped' | 'removed',
  observed: Parameters<typeof decide>[0]['observed'],
) => ({
  ...Object.fromEntries(states.map((state) => [state, decide({ desired, observed }, { state })])),
  unknown: decide({ desired, observed }, undefined),
});

test('a start that was interrupted is finished', () => {
  assert.deepEqual(outcome('running', 'starting'), {
    created: 'start',
    starting: 'note',
    running: 'note',
    stopping: 'note',
    stopped: 'start',
    failed: 'start',
    unknown: 'start',
  });
});

test('a run that ended without a request is recorded and not begun again', () => {
  for (const observed of ['running', 'temporarily_unavailable'] as const) {
    const { unknown, ...known } = outcome('running', observed);
    assert.deepEqual(new Set(Object.values(known)), new Set(['note']));
    assert.equal(unknown, 'lost');
  }
});

test('a sandbox that runs after too long an outage stays as it is until a user decides', () => {
  assert.deepEqual(outcome('running', 'recovery_decision_required'), {
    created: 'note',
    starting: 'nothing',
    running: 'nothing',
    stopping: 'nothing',
    stopped: 'note',
    failed: 'note',
    unknown: 'lost',
  });
});

test('a restart ends the run first, and begins the next when its end was written down', () => {
  assert.deepEqual(outcome('restarted', 'starting'), {
    created: 'note',
    starting: 'stop',
    running: 'stop',
    stopping: 'stop',
    stopped: 'note',
    failed: 'note',
    unknown: 'lost',
  });
});

test('a running sandbox that should be stopped is stopped, a stopped one is left alone', () => {
  assert.deepEqual(outcome('stopped', 'stopped'), {
    created: 'nothing',
    starting: 'stop',
    running: 'stop',
    stopping: 'stop',
    stopped: 'nothing',
    failed: 'nothing',
    unknown: 'nothing',
  });
  assert.equal(decide({ desired: 'stopped', observed: 'running' }, { state: 'stopped' }), 'note');
  assert.equal(decide({ desired: 'stopped', observed: 'running' }, undefined), 'lost');
});

test('a sandbox that should be removed is removed in every state', () => {
  const { unknown, ...known } = outcome('removed', 'running');
  assert.deepEqual(new Set(Object.values(known)), new Set(['remove']));
  assert.equal(unknown, 'nothing');
});
