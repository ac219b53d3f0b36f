import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostReport } from '@svc/engine/doctor';
import { verdict } from './doctor.ts';

const report = (rights: 'ok' | 'missing', canRunSandboxes: boolean): HostReport => ({
  findings: [{ group: 'kernel', name: 'rights', status: rights, finding: '', remedy: null }],
  classes: canRunSandboxes ? ['gvisor', 'container'] : [],
  canRunSandboxes,
});

test('a host is good or not by what root tried; without root that is left open', () => {
  assert.equal(verdict(report('ok', true), false), 'Sandboxes can run here. Isolation: gvisor, container.');
  assert.match(verdict(report('ok', false), false), /^No sandbox can run here yet/);
  assert.match(verdict(report('missing', false), true), /sudo svc doctor/);
});
