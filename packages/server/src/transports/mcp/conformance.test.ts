import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CONFORMANCE_FIXTURES } from '../../testing/mcp-conformance/fixtures.ts';
import { startTestServer } from '../../testing/test-server.ts';

const run = promisify(execFile);
const SUITE = new URL(
  '../../../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
  import.meta.url,
);
const RELEASED_REVISIONS = ['2025-06-18', '2025-11-25'];

for (const revision of RELEASED_REVISIONS) {
  test(`every server scenario of the official conformance suite passes (${revision})`, async (t) => {
    const { url } = await startTestServer(t, { mcpExtras: CONFORMANCE_FIXTURES });
    const scenarios = await listScenarios(revision);
    // There is no list of expected failures: one that fails makes the suite exit with 1.
    const { stdout } = await runSuite(
      'server',
      '--url',
      `${url}/mcp`,
      '--suite',
      'all',
      '--spec-version',
      revision,
    );
    for (const scenario of scenarios) {
      assert.match(stdout, new RegExp(`✓ ${scenario}: [1-9]\\d* passed, 0 failed`), scenario);
    }
    assert.match(stdout, /Total: [1-9]\d* passed, 0 failed/);
  });
}

test('a server as it ships offers none of what the suite asks for', async (t) => {
  const { url } = await startTestServer(t);
  const failing = runSuite('server', '--url', `${url}/mcp`, '--scenario', 'tools-call-simple-text');
  await assert.rejects(failing, { code: 1 });
});

async function listScenarios(revision: string): Promise<readonly string[]> {
  const { stdout } = await runSuite('list', '--server');
  const names = [...stdout.matchAll(/- (\S+) \[([^\]]+)\]/g)].filter(([, , revisions = '']) =>
    revisions.split(',').includes(revision),
  );
  assert.ok(names.length > 20, stdout);
  return names.map(([, name = '']) => name);
}

async function runSuite(...args: readonly string[]): Promise<{ readonly stdout: string }> {
  return await run(process.execPath, [SUITE.pathname, ...args], {
    timeout: 100_000,
    maxBuffer: 64 * 1024 * 1024,
  });
}
