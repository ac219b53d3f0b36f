import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingAdvisories } from './advisories.ts';

const OF_2025 = ['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881'];

test('a build is told by its version which advisories it lacks', () => {
  const lacks = (version: string | null, runtime = 'runc') =>
    missingAdvisories(runtime, version).map(({ id }) => id);
  assert.deepEqual(lacks('1.1.5+ds1'), ['CVE-2024-45310', ...OF_2025], "Debian 12's");
  assert.deepEqual(lacks('1.1.5'), ['CVE-2024-21626', 'CVE-2024-45310', ...OF_2025]);
  assert.deepEqual(lacks('1.1.15+ds1'), OF_2025, "Debian 13's");
  assert.deepEqual(lacks('1.2.7'), OF_2025);
  for (const version of ['1.2.8', '1.2.9', '1.3.3', '1.3.6+ds1', '1.4.0', '1.5.0', '2.0.0'])
    assert.deepEqual(lacks(version), [], version);
  assert.deepEqual(lacks('1.3.2'), OF_2025);
  assert.deepEqual(lacks('1.4.0-rc.2'), OF_2025);
  assert.deepEqual(lacks(null), []);
  assert.deepEqual(lacks('1.8.1', 'crun'), []);
  assert.deepEqual(lacks('0.0~20240729.0', 'runsc'), []);
});
