import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestServer } from '../../testing/test-server.ts';
import { inWordsOfTools } from './next-step.ts';
import { connectClient, textOf } from '../../testing/mcp-client.ts';

test('a model that follows what failures say gets to a running sandbox', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const call = async (name: string, input: object) =>
    textOf(await client.callTool({ name, arguments: { sandbox: 'one', ...input } }));
  const run = { command: 'sh', args: ['-c', 'echo hello'] };

  assert.equal(
    await call('sandbox_run_command', run),
    "Sandbox 'one' not found in configuration. Call sandbox_start with config.image to make it, or sandbox_get_metrics to see which sandboxes there are.",
  );
  assert.equal(
    await call('sandbox_start', { config: { image: 'python' } }),
    'Sandbox one started successfully',
  );
  assert.equal(
    await call('sandbox_start', { config: { image: 'python', memory: 1024 } }),
    "sandbox start failed: Sandbox 'one' is running with another configuration; stop it first. Call sandbox_stop, wait for its answer, then call sandbox_start again.",
  );
  await call('sandbox_stop', {});
  assert.equal(
    await call('sandbox_run_command', run),
    "command execution failed: Sandbox 'one' is stopped; start it with sandbox_start",
  );
  await call('sandbox_start', { config: { image: 'python', memory: 1024 } });
  assert.equal(await call('sandbox_run_command', run), 'hello\n');
});

test('no name of another surface is left in a failure', () => {
  const text = inWordsOfTools(
    'use sandbox.repl.run, sandbox.command.run, sandbox.metrics.get, sandbox.stop, sandbox.start',
    null,
  );
  assert.equal(
    text,
    'use sandbox_run_code, sandbox_run_command, sandbox_get_metrics, sandbox_stop, sandbox_start',
  );
});

test('a command for the operator is said to be one', () => {
  assert.equal(
    inWordsOfTools('the engine cannot be reached; start it with `svc engine start`', null),
    'the engine cannot be reached; start it with `svc engine start`. Commands that begin with svc are for the operator of this server.',
  );
});
