import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { examineHost } from './examine-host.ts';

test('a host that runs these tests can run sandboxes, and is left as it was found', async () => {
  const report = await examineHost({ dataFolder: '/var/lib/svc', isThorough: false });
  assert.deepEqual(
    report.findings.filter(({ status }) => status === 'missing'),
    [],
  );
  assert.ok(report.canRunSandboxes);
  assert.ok(report.classes.includes('container'), report.classes.join(', '));
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  assert.doesNotMatch(mounts, new RegExp(`/run/svc/doctor-${process.pid}-`));
  assert.deepEqual(
    (await readdir('/run/svc')).filter((name) => name.startsWith(`doctor-${process.pid}-`)),
    [],
  );
});
