import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import type { EngineRecord } from './record.ts';
import { keepsSpares } from './spare-process.ts';

const image = { type: 'oci', reference: 'python' } as const;
const recordOf = (spec: Partial<SandboxSpec>) => ({ spec: { image, ...spec } }) as EngineRecord;

test('spare processes stay unless files, programs or the network differ for the caller', () => {
  const keeps = (spec: Partial<SandboxSpec>) => keepsSpares(recordOf({}), recordOf(spec));
  assert.ok(keeps({}));
  assert.ok(keeps({ patches: [], runtime: { scripts: {} }, network: {} }));
  assert.ok(!keeps({ patches: [{ type: 'text', path: '/x', content: 'x' }] }));
  assert.ok(!keeps({ runtime: { scripts: { python3: 'echo' } } }));
  assert.ok(!keeps({ network: { policy: { default_egress: 'deny' } } }));
  assert.ok(!keeps({ network: { tls: { enabled: true } } }));
});
