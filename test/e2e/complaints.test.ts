import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKey } from '@svc/server/keys';
import { connectClient, textOf } from '../../packages/server/src/testing/mcp-client.ts';
import { importConfigured } from '../engine/image-fixture.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { addDemoImages, importDemoImage } from './demo-images.ts';
import { TestServer, type RpcEnvelope } from './start-server.ts';

/** The limit for calls that must fail at once instead of hanging. A busy machine may stand still for a while. */
const AT_ONCE_MS = 45_000;
/** The environment of an image that was not made for svc. */
const PLAIN_PATH = ['PATH=/usr/bin:/bin'];
const OPAQUE = /internal (?:server )?error|unknown error|undefined|\[object/i;

interface CommandResult {
  readonly exit_code: number;
  readonly output: string;
  readonly error: string;
}

interface CodeResult {
  readonly status: string;
  readonly output: string;
  readonly error: string;
  readonly has_error: boolean;
}

let server: TestServer;
let shared: string;
let headers: { readonly authorization: string };

before(async () => {
  shared = await mkdtemp(join(tmpdir(), 'svc-complaints-'));
  server = await TestServer.start({ args: [], engineArgs: ['--bind-root', shared] });
  headers = await keyFor(undefined);
  await addDemoImages(server.engine, 'python', 'node');
  await started('py', { image: 'python' });
});
after(async () => {
  try {
    await server.destroy();
  } finally {
    await rm(shared, { recursive: true, force: true });
  }
});

async function keyFor(namespace: string | undefined): Promise<{ readonly authorization: string }> {
  const { key } = await createKey(server.engine.folder, { namespace });
  return { authorization: `Bearer ${key}` };
}

async function call(method: string, params: object): Promise<RpcEnvelope> {
  return await server.call(method, params, headers);
}

async function started(sandbox: string, config: object): Promise<void> {
  const { result, error } = await call('sandbox.start', { sandbox, config });
  assert.equal(error, undefined, error?.message);
  assert.equal(result, `Sandbox ${sandbox} started successfully`);
}

async function stopped(sandbox: string): Promise<void> {
  assert.equal((await call('sandbox.stop', { sandbox })).error, undefined);
}

async function run(sandbox: string, command: string, ...args: readonly string[]): Promise<CommandResult> {
  const { result, error } = await call('sandbox.command.run', { sandbox, command, args });
  assert.equal(error, undefined, error?.message);
  return result as CommandResult;
}

async function code(sandbox: string, language: string, text: string): Promise<CodeResult> {
  const { result, error } = await call('sandbox.repl.run', { sandbox, language, code: text, timeout: 60 });
  assert.equal(error, undefined, error?.message);
  return result as CodeResult;
}

async function atOnce<Result>(act: () => Promise<Result>): Promise<Result> {
  const begun = performance.now();
  const result = await act();
  const took = performance.now() - begun;
  assert.ok(took < AT_ONCE_MS, `it took ${Math.round(took)} ms`);
  return result;
}

test('the sandbox answers right after start, commands and code alike', async () => {
  for (let round = 0; round < 3; round += 1) {
    await started('eager', { image: 'python' });
    const [command, first] = await atOnce(() =>
      Promise.all([run('eager', 'echo', 'there'), code('eager', 'python', 'print("there")')]),
    );
    assert.deepEqual([command.output, first.output], ['there\n', 'there\n']);
    await stopped('eager');
  }
});

test('a start with an image that does not exist fails at once with a reason', async () => {
  for (const image of ['svc/nothing', '127.0.0.1:1/no/such:image', 'Not An Image']) {
    const { error } = await atOnce(() => call('sandbox.start', { sandbox: 'nothing', config: { image } }));
    assert.equal(error?.code, -32_603);
    assert.match(error.message, /^sandbox start failed: .{10,}/);
    assert.doesNotMatch(error.message, OPAQUE);
    assert.match(error.message, /svc\/nothing|127\.0\.0\.1:1|Not An Image/);
  }
});

test('a failed start says why, over MCP too', async (t) => {
  const { client } = await connectClient(t, server.url, headers);
  const reasons = [
    [{ image: 'svc/nothing' }, /^sandbox start failed: .*svc\/nothing/],
    [{ image: BUSYBOX, volumes: ['/etc:/data'] }, /\/etc is not inside a folder/],
    [{ image: BUSYBOX, envs: ['NO_VALUE'] }, /config\.envs\[0\] must be KEY=VALUE/],
  ] as const;
  for (const [config, reason] of reasons) {
    const input = { sandbox: 'unlucky', config };
    const result = await client.callTool({ name: 'sandbox_start', arguments: input });
    assert.equal(result.isError, true);
    assert.match(textOf(result), reason);
    assert.doesNotMatch(textOf(result), OPAQUE);
    // What JSON-RPC says, and then which tool to call.
    const message = (await call('sandbox.start', input)).error?.message ?? 'no error';
    assert.ok(textOf(result).startsWith(message), `${textOf(result)} is not about ${message}`);
  }
});

test('a start sends progress to an MCP client', async (t) => {
  const { client } = await connectClient(t, server.url, headers);
  const seen: string[] = [];
  const input = { sandbox: 'told', config: { image: BUSYBOX } };
  await client.callTool({ name: 'sandbox_start', arguments: input }, undefined, {
    onprogress: ({ message }) => void seen.push(message ?? ''),
  });
  assert.match(seen.join('\n'), /svc\/busybox/);
  assert.match(seen.join('\n'), /starting the sandbox/);
  await stopped('told');
});

test('errors say what happened, never just Internal server error', async () => {
  await started('asleep', { image: BUSYBOX });
  await stopped('asleep');
  const py = { sandbox: 'py' };
  const cases = [
    ['sandbox.start', { sandbox: 'unheard' }, /^Sandbox 'unheard' not found in configuration$/],
    ['sandbox.start', { ...py, config: { image: BUSYBOX } }, /^sandbox start failed: .*(?:runs|running)/],
    ['sandbox.stop', { sandbox: 'unheard' }, /^Sandbox 'unheard' not found in configuration$/],
    ['sandbox.metrics.get', { sandbox: 'unheard' }, /unheard/],
    [
      'sandbox.command.run',
      { sandbox: 'asleep', command: 'true' },
      /^command execution failed: .*is stopped/,
    ],
    ['sandbox.command.run', { ...py, command: 'no-such-program' }, /no-such-program/],
    ['sandbox.command.run', { ...py, command: 'sleep', args: ['60'], timeout: 0.3 }, /within 0\.3 s/],
    [
      'sandbox.repl.run',
      { sandbox: 'asleep', language: 'python', code: '1' },
      /^execution failed: .*is stopped/,
    ],
    ['sandbox.repl.run', { ...py, language: 'node', code: '1' }, /^execution failed: .*'node' is not in/],
    ['sandbox.repl.run', { ...py, language: 'cobol', code: '1' }, /language must be one of python/],
    ['sandbox.fly', {}, /^Method not found: sandbox\.fly$/],
  ] as const;
  for (const [method, params, reason] of cases) {
    const answer = await server.post({ jsonrpc: '2.0', method, params, id: 1 }, headers);
    assert.equal(answer.status, 200, method);
    assert.match(answer.body.error?.message ?? '', reason, `${method} ${JSON.stringify(params)}`);
    assert.doesNotMatch(answer.body.error?.message ?? '', OPAQUE);
  }
});

test('volumes and variables given by the client arrive, over MCP too', async (t) => {
  await writeFile(join(shared, 'input.csv'), 'a,b\n1,2\n');
  const config = { image: BUSYBOX, volumes: [`${shared}:/data`], envs: ['MODE=fast', 'URL=a=b'] };
  const script = 'cat /data/input.csv; echo $MODE $URL; echo back > /data/output-$0';
  const expected = 'a,b\n1,2\nfast a=b\n';
  await started('given', config);
  assert.equal((await run('given', 'sh', '-c', script, 'rpc')).output, expected);
  await stopped('given');

  const { client } = await connectClient(t, server.url, headers);
  await client.callTool({ name: 'sandbox_start', arguments: { sandbox: 'given-mcp', config } });
  const ran = await client.callTool({
    name: 'sandbox_run_command',
    arguments: { sandbox: 'given-mcp', command: 'sh', args: ['-c', `${script}; ls /data`, 'mcp'] },
  });
  assert.equal(textOf(ran), `${expected}input.csv\noutput-mcp\noutput-rpc\n`);
  await stopped('given-mcp');
});

test('any image with python3 runs Python code, not only special ones', async () => {
  const image = 'registry.example/team/tools:1.0';
  await importDemoImage(server.engine, 'python', image, { Cmd: [], Env: PLAIN_PATH });
  await started('tools', { image });
  assert.equal((await code('tools', 'python', 'import json\njson.dumps([1])')).output, "'[1]'\n");
  await stopped('tools');
});

test('a user that is not root can run code and commands', async () => {
  const image = 'registry.example/team/modest:1.0';
  const config = { User: 'user', WorkingDir: '/home/user', Env: PLAIN_PATH };
  await importDemoImage(server.engine, 'python', image, config);
  await started('modest', { image });
  const shell = await run('modest', 'sh', '-c', 'id -u; pwd; echo $HOME; echo mine > note; cat note');
  assert.deepEqual([shell.output, shell.error], ['1000\n/home/user\n/home/user\nmine\n', '']);
  const python = 'import os\nopen("made", "w").close()\nprint(os.getuid(), os.getcwd(), os.listdir())';
  const { output, error } = await code('modest', 'python', python);
  assert.match(output, /^1000 \/home\/user .*'made'/, error);
  const denied = await run('modest', 'sh', '-c', 'echo x > /etc/passwd');
  assert.notEqual(denied.exit_code, 0);
  assert.match(denied.error, /permission denied/i);
  await stopped('modest');
});

test('a user that the image does not know is named in the error', async () => {
  const image = 'registry.example/team/ghost:1.0';
  const busybox = { name: 'bin/busybox', mode: 0o755, body: await readFile('/bin/busybox') };
  await importConfigured(server.engine, image, { User: 'ghost' }, [busybox]);
  const { error } = await call('sandbox.start', { sandbox: 'ghost', config: { image } });
  assert.match(error?.message ?? '', /^sandbox start failed: .*user.*ghost/);
});

test('the node image runs node', async () => {
  await started('js', { image: 'node' });
  const version = await run('js', 'node', '--version');
  assert.match(version.output, /^v\d+\.\d+\.\d+\n$/);
  for (const language of ['node', 'nodejs', 'javascript']) {
    const { output, status } = await code('js', language, 'const { sep } = require("path"); sep + 6 * 7');
    assert.deepEqual([status, output], ['success', "'/42'\n"]);
  }
  await stopped('js');
});

/** A wheel is a zip with a few files of text. */
const MAKE_WHEEL = `
import zipfile
info = "tiny-1.0.dist-info/"
with zipfile.ZipFile("/tmp/tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "answer = 42\\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "".join(f"{name},,\\n" for name in [*wheel.namelist(), info + "RECORD"]))
`;

test('pip works through command.run, and code finds what it installed', async () => {
  const version = await run('py', 'pip', '--version');
  assert.match(version.output, /^pip \d+\..*python 3/);
  assert.equal((await run('py', 'python3', '-c', MAKE_WHEEL)).error, '');
  const installed = await run('py', 'pip', 'install', '--no-index', '/tmp/tiny-1.0-py3-none-any.whl');
  assert.deepEqual([installed.exit_code, installed.error], [0, '']);
  assert.match(installed.output, /Successfully installed tiny-1\.0/);
  assert.equal((await run('py', 'python3', '-c', 'import tiny; print(tiny.answer)')).output, '42\n');
  assert.equal((await code('py', 'python', 'import tiny\ntiny.answer')).output, '42\n');
});

test('null lists are accepted', async (t) => {
  const lists = { envs: null, volumes: null, ports: null, scripts: null };
  const config = { image: BUSYBOX, ...lists, memory: null, cpus: null, shell: null, workdir: null };
  await started('nulls', config);
  const params = { sandbox: 'nulls', command: 'pwd', args: null, timeout: null };
  assert.partialDeepStrictEqual((await call('sandbox.command.run', params)).result, {
    args: [],
    output: '/\n',
  });
  const { client } = await connectClient(t, server.url, headers);
  const again = await client.callTool({ name: 'sandbox_start', arguments: { sandbox: 'nulls', config } });
  assert.equal(textOf(again), 'Sandbox nulls started successfully');
  const ran = await client.callTool({ name: 'sandbox_run_command', arguments: params });
  assert.equal(textOf(ran), '/\n');
  await stopped('nulls');
});

test('a key limited to a namespace works over MCP in that namespace and nowhere else', async (t) => {
  const { client } = await connectClient(t, server.url, await keyFor('team'));
  const tool = async (name: string, input: object) =>
    await client.callTool({ name, arguments: { namespace: 'team', ...input } });
  const start = await tool('sandbox_start', { sandbox: 'own', config: { image: BUSYBOX } });
  assert.equal(textOf(start), 'Sandbox own started successfully');
  const echo = { sandbox: 'own', command: 'echo', args: ['hi'] };
  assert.equal(textOf(await tool('sandbox_run_command', echo)), 'hi\n');
  const listed = await tool('sandbox_get_metrics', { namespace: '*' });
  assert.deepEqual(namesIn(listed.structuredContent), ['team/own']);
  for (const namespace of ['default', undefined, 'other']) {
    for (const [name, input] of [
      ['sandbox_run_command', { sandbox: 'py', command: 'true' }],
      ['sandbox_run_code', { sandbox: 'py', language: 'python', code: '1' }],
      ['sandbox_start', { sandbox: 'py', config: { image: BUSYBOX } }],
      ['sandbox_stop', { sandbox: 'py' }],
      ['sandbox_get_metrics', {}],
    ] as const) {
      const denied = await tool(name, { ...input, namespace });
      assert.equal(denied.isError, true, `${name} in ${namespace}`);
      const words = `Access denied to namespace '${namespace ?? 'default'}'. Call the tool with namespace "team"`;
      assert.ok(textOf(denied).startsWith(words), textOf(denied));
    }
  }
  assert.equal(textOf(await tool('sandbox_stop', { sandbox: 'own' })), 'Sandbox own stopped successfully');
});

function namesIn(metrics: unknown): readonly string[] {
  const { sandboxes } = metrics as { sandboxes: { namespace: string; name: string }[] };
  return sandboxes.map(({ namespace, name }) => `${namespace}/${name}`);
}

const WITH_BLANK_LINES = `
def double(x):
    y = x

    return y * 2


class Box:

    size = 3

    def get(self):

        if self.size:

            return double(self.size)

for i in range(2):

    print("round", i)

else:

    print("""a text

with a gap""")

Box().get()
`;

test('Python with blank lines inside blocks runs whole', async () => {
  const { status, output, error } = await code('py', 'python', WITH_BLANK_LINES);
  assert.deepEqual([status, error], ['success', '']);
  assert.equal(output, 'round 0\nround 1\na text\n\nwith a gap\n6\n');
});

test('an unclosed bracket is an error at once, and the next call works', async () => {
  await code('py', 'python', 'kept = 41');
  for (const open of ['print((1', 'x = [1,\n', 'text = """no end', 'if True:', 'def f(']) {
    const { status, has_error, error } = await atOnce(() => code('py', 'python', open));
    assert.deepEqual([status, has_error], ['error', true], open);
    assert.match(error, /SyntaxError|IndentationError/);
    assert.equal((await code('py', 'python', 'kept + 1')).output, '42\n');
  }
});

test('nothing printed before the exit is lost', async () => {
  const size = 300_000;
  const loud = `import sys; sys.stdout.write("o" * ${size} + "END"); sys.stderr.write("e" * ${size} + "END"); sys.exit(3)`;
  for (let round = 0; round < 5; round += 1) {
    const { exit_code, output, error } = await run('py', 'python3', '-c', loud);
    assert.equal(exit_code, 3);
    for (const text of [output, error]) assert.deepEqual([text.length, text.slice(-3)], [size + 3, 'END']);
  }
  for (const end of ['exit()', 'import os; os._exit(0)', 'raise SystemExit(1)']) {
    const { output } = await code('py', 'python', `print("o" * ${size} + "END", end="", flush=True)\n${end}`);
    assert.deepEqual([output.length, output.slice(-3)], [size + 3, 'END'], end);
    assert.equal((await code('py', 'python', '40 + 2')).output, '42\n');
  }
});
