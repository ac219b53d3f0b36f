import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOfStep, stepOfCode } from './one-time-code.ts';

const STEP_MS = 30_000;
/** RFC 6238, appendix B: its secret in Base32, and the last six digits of what it expects for SHA-1. */
const RFC_SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
const RFC_CODES = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [20_000_000_000, '353130'],
] as const;

test('codes are those that authenticator apps show', () => {
  for (const [second, code] of RFC_CODES)
    assert.equal(codeOfStep(RFC_SECRET, Math.floor(second / 30)), code, String(second));
});

test('a code read at the end of its step is taken until the end of the next, and not after', () => {
  const secret = RFC_SECRET;
  const step = 58_000_000;
  const code = codeOfStep(secret, step);
  const begin = step * STEP_MS;
  // One step early, for a device whose clock is ahead.
  for (const at of [begin - STEP_MS, begin, begin + STEP_MS - 1, begin + STEP_MS, begin + 2 * STEP_MS - 1])
    assert.equal(stepOfCode(secret, code, at), step, `${at - begin} ms from its begin`);
  for (const at of [begin - STEP_MS - 1, begin + 2 * STEP_MS])
    assert.equal(stepOfCode(secret, code, at), undefined, `${at - begin} ms from its begin`);
});
