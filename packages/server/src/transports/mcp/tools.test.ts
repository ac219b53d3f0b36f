import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { CodeRunner } from '../../code/code-runner.ts';
import { signKey } from '../../access/signed-keys.ts';
import { withEnoughTime } from '../../testing/enough-time.ts';
import { startTestServer } from '../../testing/test-server.ts';
import { connectClient, fieldsOf, textOf } from '../../testing/mcp-client.ts';
import { TOOL_LIST } from './tools.ts';

const START = { sandbox: 'one', namespace: 'default', config: { image: 'python' } };

test('the five tools of the specification come first, and every tool has a schema and hints', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools
      .slice(0, 5)
      .map(({ name, annotations }) => [
        name,
        annotations?.readOnlyHint,
        annotations?.destructiveHint,
        annotations?.idempotentHint,
      ]),
    [
      ['sandbox_start', false, false, true],
      ['sandbox_stop', false, true, true],
      ['sandbox_run_code', false, true, false],
      ['sandbox_run_command', false, true, false],
      ['sandbox_get_metrics', true, undefined, undefined],
    ],
  );
  assert.deepEqual(
    tools.map(({ name }) => name),
    TOOL_LIST,
  );
  for (const { name, title, description, inputSchema, annotations = {} } of tools) {
    assert.ok((description ?? '').length > 40 && (title ?? '').length > 5, name);
    const isReader = annotations.readOnlyHint;
    assert.equal(typeof isReader, 'boolean', name);
    for (const hint of ['destructiveHint', 'idempotentHint'] as const)
      assert.equal(typeof annotations[hint], isReader ? 'undefined' : 'boolean', `${name}: ${hint}`);
    assert.equal(typeof annotations.openWorldHint, 'boolean', name);
    assert.equal(inputSchema.type, 'object');
  }
  const run = tools.find(({ name }) => name === 'sandbox_run_code');
  assert.deepEqual(run?.inputSchema.required, ['sandbox', 'language', 'code']);
});

test('the list of tools costs a conversation 24,000 bytes at most', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const { tools } = await client.listTools();
  const bytes = Buffer.byteLength(JSON.stringify(tools));
  assert.ok(bytes <= 24_000, `${bytes} bytes`);
});

test('input schemas of tools have no unions with null, and null is accepted all the same', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const { tools } = await client.listTools();
  assert.doesNotMatch(JSON.stringify(tools.map(({ inputSchema }) => inputSchema)), /anyOf|oneOf|"null"/);
  const start = tools.find(({ name }) => name === 'sandbox_start');
  const config = start?.inputSchema.properties?.['config'] as {
    type: string;
    properties: Record<string, { type: string; description: string }>;
  };
  assert.equal(config.type, 'object');
  assert.equal(config.properties['memory']?.type, 'integer');
  assert.match(config.properties['memory'].description, /^Memory limit in MiB/);

  await client.callTool({ name: 'sandbox_start', arguments: START });
  const input = { sandbox: 'one', namespace: null, config: null };
  assert.equal((await client.callTool({ name: 'sandbox_start', arguments: input })).isError, undefined);
});

test('a sandbox is started, used, measured and stopped, and each result travels once', async (t) => {
  const codeRunner: CodeRunner = {
    run: async ({ language, code }) =>
      await Promise.resolve({ status: 'error', output: `${language}:`, error: code, truncated: false }),
    forget: () => undefined,
  };
  const { url } = await startTestServer(t, { codeRunner });
  const { client } = await connectClient(t, url);
  await client.listTools();
  const started = await client.callTool({ name: 'sandbox_start', arguments: START });
  assert.equal(textOf(started), 'Sandbox one started successfully');
  assert.deepEqual(Object.keys(started), ['content']);
  assert.equal(started.isError, undefined);

  const code = await client.callTool({
    name: 'sandbox_run_code',
    arguments: { sandbox: 'one', language: 'Python', code: 'boom' },
  });
  assert.equal(textOf(code), 'python:\n[stderr]\nboom');
  assert.deepEqual(
    [code.structuredContent, fieldsOf(code)],
    [undefined, { status: 'error', has_error: true }],
  );

  const command = await client.callTool({
    name: 'sandbox_run_command',
    arguments: { sandbox: 'one', command: 'sh', args: ['-c', 'echo out; echo err >&2; exit 3'] },
  });
  assert.equal(textOf(command), 'out\n[stderr]\nerr\n[exit code 3]\n');
  assert.deepEqual(fieldsOf(command), { exit_code: 3, success: false });

  const metrics = await client.callTool({ name: 'sandbox_get_metrics', arguments: { namespace: 'default' } });
  const { sandboxes } = metrics.structuredContent as { sandboxes: { name: string; running: boolean }[] };
  assert.deepEqual(
    sandboxes.map(({ name, running }) => [name, running]),
    [['one', true]],
  );
  assert.match(textOf(metrics), /^default\/one: running, CPU \S+ %, memory \S+ MiB, disk \S+ bytes$/);

  const stopped = await client.callTool({ name: 'sandbox_stop', arguments: { sandbox: 'one' } });
  assert.equal(textOf(stopped), 'Sandbox one stopped successfully');
});

test('output of a command is in its answer once', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  await client.callTool({ name: 'sandbox_start', arguments: START });
  const print = { sandbox: 'one', command: 'sh', args: ['-c', 'printf %020000d 0'] };
  const bytes = JSON.stringify(
    await client.callTool({ name: 'sandbox_run_command', arguments: print }),
  ).length;
  assert.ok(bytes > 20_000 && bytes < 20_200, `${bytes} bytes`);
});

test('a call that fails is a result with the real reason', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const cases = [
    [
      'sandbox_start',
      { ...START, config: { image: 'missing' } },
      'sandbox start failed: image missing is not known; import it first. Call sandbox_start with another config.image, for example "python" or "node".',
    ],
    [
      'sandbox_stop',
      { sandbox: 'unknown' },
      "Sandbox 'unknown' not found in configuration. Call sandbox_start with config.image to make it, or sandbox_get_metrics to see which sandboxes there are.",
    ],
    ['sandbox_stop', { sandbox: '' }, 'Sandbox name cannot be empty'],
    ['sandbox_stop', { sandbox: 'a', namespace: '' }, 'Namespace cannot be empty'],
    [
      'sandbox_run_code',
      { sandbox: 'a', language: 'cobol', code: '' },
      'Invalid params: language must be one of python, node, nodejs, javascript, or kernel: and the name of a Jupyter kernel of the image',
    ],
  ] as const;
  for (const [name, input, reason] of cases) {
    const result = await client.callTool({ name, arguments: input });
    assert.equal(result.isError, true);
    assert.equal(textOf(result), reason);
  }
});

test('a command that runs too long is a failed call with its output so far', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  await client.callTool({ name: 'sandbox_start', arguments: START });
  const command = { sandbox: 'one', command: 'sh', args: ['-c', 'echo before; exec sleep 1000'] };
  const { seconds, outcome: result } = await withEnoughTime(
    async (timeout) =>
      await client.callTool({ name: 'sandbox_run_command', arguments: { ...command, timeout } }),
    (answer) => textOf(answer).includes('before'),
  );
  assert.equal(result.isError, true);
  const [reason, output] = (result.content as { text: string }[]).map(({ text }) => text);
  const next =
    'Call the tool again with a larger timeout, or with less to do; sandbox_start_process runs it in the background.';
  assert.equal(reason, `command execution failed: sh did not end within ${seconds} s. ${next}`);
  assert.equal(output, 'before\n');
});

test('a tool that does not exist is an error of the protocol', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  await assert.rejects(client.callTool({ name: 'rm_rf', arguments: {} }), { code: -32_602 });
});

test('a start reports its progress to a client that asks for it, in numbers that grow', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const seen: { progress: number; message?: string | undefined }[] = [];
  await client.callTool({ name: 'sandbox_start', arguments: START }, undefined, {
    onprogress: ({ progress, message }) => void seen.push({ progress, message }),
  });
  assert.ok(seen.length >= 2, JSON.stringify(seen));
  assert.match(seen[0]?.message ?? '', /^downloading image: 0\.0 of 0\.0 MiB$/);
  assert.deepEqual(
    seen.map(({ progress }) => progress),
    seen.map((_, index) => index + 1),
  );
});

test('log messages come from the level on that the client has set', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const messages: string[] = [];
  client.fallbackNotificationHandler = async (notification) => {
    messages.push(String(notification.params?.['data']));
    await Promise.resolve();
  };
  await client.setLoggingLevel('error');
  await client.callTool({ name: 'sandbox_start', arguments: START });
  assert.equal(messages.length, 0);
  await client.callTool({ name: 'sandbox_stop', arguments: { sandbox: 'one' } });
  await client.setLoggingLevel('info');
  await client.callTool({ name: 'sandbox_start', arguments: START });
  assert.ok(messages.includes('starting the sandbox'), JSON.stringify(messages));
});

test('a call that the client cancels is aborted', async (t) => {
  let wasAborted = false;
  const codeRunner: CodeRunner = {
    run: async (_request, signal) =>
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          wasAborted = true;
          reject(new Error('aborted'));
        });
      }),
    forget: () => undefined,
  };
  const { url } = await startTestServer(t, { codeRunner });
  const { client } = await connectClient(t, url);
  await client.callTool({ name: 'sandbox_start', arguments: START });
  const cancel = new AbortController();
  const input = { sandbox: 'one', language: 'python', code: 'while True: pass' };
  const call = client.callTool({ name: 'sandbox_run_code', arguments: input }, undefined, {
    signal: cancel.signal,
  });
  await client.ping();
  cancel.abort('enough');
  await assert.rejects(call);
  await waitUntil(() => wasAborted, 'the abort');
});

test('a key for one namespace opens that namespace and no other', async (t) => {
  const signingKey = randomBytes(32);
  const { url } = await startTestServer(t, { signingKey });
  const key = await signKey(signingKey, { namespace: 'team', createdAt: new Date(), expiresAt: null });
  const { client } = await connectClient(t, url, { authorization: `Bearer ${key}` });
  const own = await client.callTool({ name: 'sandbox_start', arguments: { ...START, namespace: 'team' } });
  assert.equal(textOf(own), 'Sandbox one started successfully');
  for (const namespace of ['default', 'other', undefined]) {
    const denied = await client.callTool({ name: 'sandbox_start', arguments: { ...START, namespace } });
    assert.equal(denied.isError, true);
    assert.equal(
      textOf(denied),
      `Access denied to namespace '${namespace ?? 'default'}'. Call the tool with namespace "team", which is the one of this key.`,
    );
  }
});

test('the two prompts have defaults and take a name and a namespace', async (t) => {
  const { url } = await startTestServer(t);
  const { client } = await connectClient(t, url);
  const { prompts } = await client.listPrompts();
  assert.deepEqual(
    prompts.map(({ name, arguments: given }) => [name, given?.map((argument) => argument.name)]),
    [
      ['create_python_sandbox', ['sandbox_name', 'namespace']],
      ['create_node_sandbox', ['sandbox_name', 'namespace']],
    ],
  );
  const plain = JSON.stringify(await client.getPrompt({ name: 'create_node_sandbox' }));
  assert.match(plain, /node-sandbox.*default/);
  const given = { sandbox_name: 'mine', namespace: 'team' };
  const named = JSON.stringify(await client.getPrompt({ name: 'create_python_sandbox', arguments: given }));
  assert.match(named, /mine.*team/);
  assert.match(named, /sandbox_start/);
  await assert.rejects(client.getPrompt({ name: 'nothing' }), { code: -32_602 });
});
