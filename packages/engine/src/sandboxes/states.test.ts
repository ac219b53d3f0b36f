import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxState } from '@svc/contract/orchestrator';
import { assertMove, canMove, NEXT_STATES } from './states.ts';

const STATES = Object.keys(NEXT_STATES) as SandboxState[];

test('from every state a sandbox can come to run again', () => {
  for (const from of STATES) {
    const reached = new Set<SandboxState>([from]);
    for (const state of reached) for (const next of NEXT_STATES[state]) reached.add(next);
    assert.ok(reached.has('running'), `${from} is a dead end`);
  }
});

test('no state leads to itself, and running is reached only through starting', () => {
  for (const from of STATES) assert.equal(canMove(from, from), false);
  assert.deepEqual(
    STATES.filter((from) => canMove(from, 'running')),
    ['starting'],
  );
});

test('an illegal move is refused by both names', () => {
  assert.throws(() => assertMove('box', 'created', 'running'), {
    code: 'invalid_state_transition',
    message: 'Sandbox box is created and cannot become running',
  });
});
