import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { CodeRequest } from '../../code/code-runner.ts';
import type { CodeResult } from '../../code/slot-request.ts';
import { startTestServer } from '../../testing/test-server.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const FINE: CodeResult = { status: 'success', output: '2\n', error: '', truncated: false };

/** A server whose interpreters give the answers of the test; records their requests. */
async function running(t: TestContext, answer: () => CodeResult = () => FINE) {
  const asked: CodeRequest[] = [];
  const forgotten: string[] = [];
  const server = await startTestServer(t, {
    codeRunner: {
      run: async (request) => {
        asked.push(request);
        return await Promise.resolve(answer());
      },
      forget: (sandboxId) => void forgotten.push(sandboxId),
    },
  });
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  const run = (params: object, path = '/api/v1/rpc') =>
    server.call('sandbox.repl.run', { sandbox: 'a', language: 'python', code: '1+1', ...params }, { path });
  return { server, asked, forgotten, run };
}

test('every name of a language leads to its interpreter and comes back as it was sent', async (t) => {
  const { asked, run } = await running(t);
  const names = ['python', 'Python', 'node', 'nodejs', 'javascript', 'JavaScript'];
  for (const language of names) {
    const { result } = await run({ language });
    assert.deepEqual(result, { status: 'success', language, output: '2\n', error: '', has_error: false });
  }
  assert.deepEqual(
    asked.map(({ language }) => language),
    ['python', 'python', 'node', 'node', 'node', 'node'],
  );
});

test('code that fails or takes too long is a result with has_error, not a failed call', async (t) => {
  for (const status of ['error', 'timeout'] as const) {
    const { run } = await running(t, () => ({ ...FINE, status, error: 'Traceback …\n', truncated: true }));
    const { result } = await run({});
    assert.deepEqual(result, {
      status,
      language: 'python',
      output: '2\n',
      error: 'Traceback …\n',
      has_error: true,
      truncated: true,
    });
  }
});

test('a timeout is in seconds and at most a day', async (t) => {
  const { asked, run } = await running(t);
  for (const timeout of [0.5, 30_000_000_000, null]) await run({ timeout });
  assert.deepEqual(
    asked.map(({ timeoutMs }) => timeoutMs),
    [500, DAY_MS, DAY_MS],
  );
});

test('an interpreter that the image lacks is -32603 and named', async (t) => {
  const { run } = await running(t, () => {
    throw new PlatformError('exec_failed', 'python3 is not in the image');
  });
  const { error } = await run({});
  assert.equal(error?.code, -32_603);
  assert.equal(error.message, 'execution failed: python3 is not in the image');
});

test('the state of interpreters goes with the run of the sandbox', async (t) => {
  const { server, forgotten } = await running(t);
  const [report] = await server.orchestrator.list();
  await server.call('sandbox.stop', { sandbox: 'a' });
  assert.ok(forgotten.includes(report?.id ?? ''));
});

test('the legacy path has output as lines and neither error nor has_error', async (t) => {
  const { run } = await running(t, () => ({ ...FINE, status: 'error', output: 'a\nb\n', error: 'c' }));
  const { result } = await run({}, '/legacy/api/v1/rpc');
  assert.deepEqual(result, {
    status: 'error',
    language: 'python',
    output: [
      { stream: 'stdout', text: 'a' },
      { stream: 'stdout', text: 'b' },
      { stream: 'stderr', text: 'c' },
    ],
  });
});
