import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { TOOL_LIST } from '../../packages/server/src/transports/mcp/tools.ts';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { Agent, type Answer } from './mcp-agent.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

const DOMAIN = 'preview.test';
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const overHttp = ['HTTP', (server: TestServer, sandbox: string) => Agent.overHttp(server, sandbox)] as const;
const overStdio = [
  'stdio',
  (server: TestServer, sandbox: string) => Agent.overStdio(server, sandbox),
] as const;
/** What isolates a sandbox does not matter to the transport: the second one is tried with one class. */
const TRANSPORTS = { container: [overHttp, overStdio], gvisor: [overHttp], microvm: [] };

for (const isolation of CLASSES) {
  describe(`MCP tools with class ${isolation}`, { concurrency: false }, () => {
    let server: TestServer;
    before(async () => {
      server = await TestServer.start({
        args: ['--dev', '--preview-domain', DOMAIN],
        engineArgs: ['--isolation', isolation],
      });
      await importPython(server.engine);
    });
    after(() => server.destroy());

    for (const [transport, connect] of TRANSPORTS[isolation]) {
      test(`the official client works with every tool over ${transport}`, async () => {
        const agent = await connect(server, `box-${transport.toLowerCase()}`);
        try {
          await agent.call('sandbox_start', { config: { image: 'python', memory: 256, workdir: '/srv' } });
          await workWithFiles(agent);
          await readAsResource(agent);
          await runThings(agent);
          await runInBackground(agent);
          await openPreview(agent, server);
          await setLifetime(agent);
          await takeSnapshots(agent, transport.toLowerCase());
          await lookAndRemove(agent, `box-${transport.toLowerCase()}`);
          assert.deepEqual([...agent.called].toSorted(), [...TOOL_LIST].toSorted());
        } finally {
          await agent.close();
        }
      });
    }
  });
}

async function workWithFiles(agent: Agent): Promise<void> {
  const path = 'app/hello.py';
  const source = 'def greet(name):\n    return "Hello " + nam\n\nprint(greet("you"))\n';
  const written = await agent.call('sandbox_write_file', { path, content: source });
  assert.deepEqual([written.data.path, written.data.size_bytes], ['/srv/app/hello.py', source.length]);
  assert.equal((await agent.call('sandbox_read_file', { path })).text, source);
  const part = await agent.call('sandbox_read_file', { path, offset: 2, limit: 1 });
  assert.deepEqual(
    [part.text, part.data.first_line, part.data.last_line, part.data.has_more],
    ['    return "Hello " + nam\n', 2, 2, true],
  );

  assert.match(
    await agent.fail('sandbox_edit_file', { path, old_text: 'return  "Hello "', new_text: 'x' }),
    /old_text is not in \/srv\/app\/hello\.py; read it again with sandbox_read_file/,
  );
  assert.match(
    await agent.fail('sandbox_edit_file', { path, old_text: 'greet', new_text: 'hail' }),
    /is in \/srv\/app\/hello\.py 2 times, at lines 1, 4; give more of the lines .* or set replace_all/,
  );
  const edited = await agent.call('sandbox_edit_file', { path, old_text: '+ nam\n', new_text: '+ name\n' });
  assert.deepEqual([edited.data.replacements, edited.data.lines], [1, [2]]);
  const all = { path, old_text: 'greet', new_text: 'hail', replace_all: true };
  assert.deepEqual((await agent.call('sandbox_edit_file', all)).data.lines, [1, 4]);
  const run = await agent.call('sandbox_run_command', { command: 'python3', args: [`/srv/${path}`] });
  assert.equal(run.text, 'Hello you\n');

  const image = Buffer.from(PNG, 'base64');
  const half = 45;
  const upload = (bytes: Buffer, append: boolean) =>
    agent.call('sandbox_upload_file', { path: '/srv/dot.png', data: bytes.toString('base64'), append });
  await upload(image.subarray(0, half), false);
  assert.equal((await upload(image.subarray(half), true)).data.size_bytes, image.length);
  const shown = await agent.call('sandbox_read_file', { path: '/srv/dot.png' });
  assert.deepEqual(shown.content[1], { type: 'image', data: PNG, mimeType: 'image/png' });
  const got = await agent.call('sandbox_download_file', {
    path: 'dot.png',
    include_data: true,
    length: half,
  });
  assert.equal(got.data.next_offset, half);
  const rest = { path: 'dot.png', include_data: true, offset: half };
  const end = await agent.call('sandbox_download_file', rest);
  assert.equal(end.data.next_offset, null);
  const whole = [got.data.data, end.data.data].map((piece: string) => Buffer.from(piece, 'base64'));
  assert.deepEqual(Buffer.concat(whole), image);

  const listed = await agent.call('sandbox_list_files');
  assert.deepEqual(
    listed.data.entries.map(({ name, kind }: { name: string; kind: string }) => [name, kind]),
    [
      ['app', 'directory'],
      ['dot.png', 'file'],
    ],
  );
  const grep = async (more: object) => (await agent.call('sandbox_grep', more)).text;
  assert.equal(await grep({ pattern: '^PRINT', ignore_case: true }), './app/hello.py:4:print(hail("you"))');
  assert.equal(await grep({ pattern: '-e', path: '/srv/app/' }), '[nothing was found]');
  const one = await agent.call('sandbox_grep', { pattern: 'hail', path: 'app/hello.py', limit: 1 });
  assert.deepEqual([one.data.shown, one.data.has_more], [1, true]);
  assert.match(await agent.fail('sandbox_grep', { pattern: '(' }), /grep/i);
  for (const pattern of ['*.py', 'app/*.py', '**/*.py', 'app/**/hello.py'])
    assert.equal((await agent.call('sandbox_glob', { pattern })).text, './app/hello.py', pattern);
  assert.equal(
    (await agent.call('sandbox_glob', { pattern: '*/hello.*', path: '/srv/' })).text,
    '/srv/app/hello.py',
  );
  assert.match(await agent.fail('sandbox_glob', { pattern: '*', path: '-delete' }), /No such file/);
  assert.match(await agent.fail('sandbox_read_file', { path: 'none' }), /\/srv\/none: .*sandbox_list_files/);
  assert.match(await agent.fail('sandbox_remove_file', { path: 'app' }), /\/srv\/app/);
  await agent.call('sandbox_remove_file', { path: 'app', recursive: true });
  assert.equal((await agent.call('sandbox_list_files')).data.total, 1);
}

async function readAsResource(agent: Agent): Promise<void> {
  const { resourceTemplates } = await agent.client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ['svc://sandboxes/{name}/files/{+path}{?namespace}'],
  );
  const { content } = await agent.call('sandbox_download_file', { path: 'dot.png' });
  const link = content.find(({ type }) => type === 'resource_link');
  assert.ok(link?.uri !== undefined, JSON.stringify(content));
  const { contents } = await agent.client.readResource({ uri: link.uri });
  assert.deepEqual(contents, [{ uri: link.uri, mimeType: 'image/png', blob: PNG }]);
  const odd = '/srv/a b/ümläut #1?.md';
  const { data } = await agent.call('sandbox_write_file', { path: odd, content: '# Title\n' });
  const read = await agent.client.readResource({ uri: data.uri });
  assert.deepEqual(read.contents, [{ uri: data.uri, mimeType: 'text/markdown', text: '# Title\n' }]);
  await assert.rejects(agent.client.readResource({ uri: `${data.uri}x` }), { code: -32_002 });
  await assert.rejects(agent.client.readResource({ uri: 'svc://elsewhere' }), { code: -32_002 });
}

async function runThings(agent: Agent): Promise<void> {
  const code = await agent.call('sandbox_run_code', { language: 'python', code: 'x = 6\nx * 7' });
  assert.equal(code.text, '42\n');
  const draw = `import base64\nclass Dot:\n  def _repr_png_(self):\n    return base64.b64decode("${PNG}")\nDot()`;
  const drawn = await agent.call('sandbox_run_code', { language: 'python', code: draw });
  assert.deepEqual(
    drawn.content.filter(({ type }) => type === 'image'),
    [{ type: 'image', data: PNG, mimeType: 'image/png' }],
  );
  assert.equal(drawn.data.results, undefined);
  const length = 5_000_000;
  const print = `print("begin" + "." * ${length} + "end")`;
  for (const [tool, input] of [
    ['sandbox_run_code', { language: 'python', code: print }],
    ['sandbox_run_command', { command: 'python3', args: ['-c', print] }],
  ] as const) {
    const { text: shown, data, content } = await agent.call(tool, input);
    assert.ok(JSON.stringify([content, data]).length < 100_000, `${tool}: it is bounded`);
    assert.match(
      shown,
      /^begin\.+\n\[\d+ characters are left out here; all of it is in (\S+) of .*\]\n\.+end/,
    );
    assert.equal(data.truncated, true);
    const link = content.find(({ type }) => type === 'resource_link');
    assert.ok((link?.size ?? 0) >= length + 8, JSON.stringify(link));
    const path = /all of it is in (\S+) of/.exec(shown)?.[1] ?? '';
    const size = await agent.call('sandbox_run_command', { command: 'wc', args: ['-c', path] });
    assert.match(size.text, /^500\d{4} /);
    const { contents } = await agent.client.readResource({ uri: link?.uri ?? '' });
    const { text: whole } = contents[0] as { text: string };
    assert.ok(whole.startsWith(`begin${'.'.repeat(length)}end`), `${tool}: ${whole.length} characters`);
  }
}

async function runInBackground(agent: Agent): Promise<void> {
  const script =
    'trap "echo bye; exit 3" TERM; echo "pid $GREETING"; echo oops >&2; while :; do sleep 0.1; done';
  const { data: started } = await agent.call('sandbox_start_process', {
    command: 'sh',
    args: ['-c', script],
    envs: ['GREETING=a=b'],
    workdir: '/tmp',
    name: 'worker',
  });
  assert.deepEqual([started.status, started.name], ['running', 'worker']);
  let first: Answer | undefined;
  await waitUntil(async () => {
    first = await agent.call('sandbox_read_output', { process: 'worker', offset: '0-0' });
    return first.text.includes('pid') && first.text.includes('oops');
  }, 'the first output');
  assert.match(first?.text ?? '', /^pid a=b\n\[stderr\]\noops\n\[process worker is running; /);
  const brief = await agent.call('sandbox_wait_process', { process: 'worker', timeout: 0.2 });
  assert.equal(brief.data.status, 'running');
  await agent.call('sandbox_signal_process', { process: 'worker', signal: 'SIGUSR2' });
  const killed = await agent.call('sandbox_wait_process', {
    process: 'worker',
    offset: first?.data.next_offset,
  });
  assert.deepEqual([killed.data.status, killed.data.end_reason], ['exited', 'killed_by']);
  assert.match(await agent.fail('sandbox_read_output', { process: 'missing' }), /sandbox_list_processes/);

  await agent.call('sandbox_start_process', { command: 'sh', args: ['-c', script], name: 'worker' });
  await waitUntil(
    async () => (await agent.call('sandbox_read_output', { process: 'worker' })).text.includes('oops'),
    'its trap is set',
  );
  const stopped = await agent.call('sandbox_stop_process', { process: 'worker', grace: 30 });
  assert.deepEqual([stopped.data.status, stopped.data.exit_code], ['exited', 3]);
  assert.equal((await agent.call('sandbox_stop_process', { process: 'worker' })).data.exit_code, 3);
  const output = await agent.call('sandbox_read_output', { process: 'worker' });
  assert.match(output.text, /^bye$/m);
  const { data: list } = await agent.call('sandbox_list_processes', { status: 'exited' });
  assert.equal(list.processes.length, 2);

  const many = { command: 'sh', args: ['-c', 'seq 100000'], name: 'numbers' };
  await agent.call('sandbox_start_process', many);
  const tail = await agent.call('sandbox_wait_process', { process: 'numbers' });
  assert.match(tail.text, /\n99999\n100000\n\[/);
  assert.match(tail.text, /bytes before this are not shown; offset "0-0" is the beginning/);
  const head = await agent.call('sandbox_read_output', { process: 'numbers', offset: '0-0' });
  assert.ok(head.data.has_more && head.text.startsWith('1\n2\n'), head.text.slice(0, 100));
  const next = await agent.call('sandbox_read_output', { process: 'numbers', offset: head.data.next_offset });
  const joined = [head, next]
    .map((part) => part.text.replace(/\n\[process .*$/, '').replace(/^\[.*\n/, ''))
    .join('');
  assert.match(joined, /^(?:\d+\n)+\d*$/);
  assert.ok(joined.includes('\n6000\n6001\n'), 'nothing is missing between the parts');
}

async function setLifetime(agent: Agent): Promise<void> {
  const set = { ends_in_secs: 3600, idle_timeout_secs: 900, keep_alive: true };
  const { data } = await agent.call('sandbox_set_lifetime', set);
  assert.deepEqual([data.status, data.idle_timeout_secs], ['running', 900]);
  assert.ok(Math.abs(Date.parse(data.ends_at) - Date.now() - 3_600_000) < 120_000, data.ends_at);
  const none = await agent.call('sandbox_set_lifetime', { max_duration_secs: 0, idle_timeout_secs: 0 });
  const { ends_at: end, max_duration_secs: most, idle_timeout_secs: idle } = none.data;
  assert.deepEqual([end, most, idle], [null, null, null]);
  assert.match(await agent.fail('sandbox_set_lifetime'), /ends_in_secs is missing; give it, or/);
}

async function openPreview(agent: Agent, server: TestServer): Promise<void> {
  await agent.call('sandbox_write_file', { path: '/srv/www/index.html', content: 'hello from the sandbox' });
  const none = await agent.call('sandbox_preview_url', { port: 8000 });
  assert.equal(none.data.is_listening, false);
  assert.match(none.text, /^http\S+\n\[nothing listens on port 8000 of the sandbox yet: /);
  const web = ['-m', 'http.server', '8000', '--bind', '0.0.0.0'];
  await agent.call('sandbox_start_process', {
    command: 'python3',
    args: web,
    workdir: '/srv/www',
    name: 'web',
  });
  const { data } = await agent.call('sandbox_preview_url', { port: 8000, expires_in_secs: 600 });
  assert.notEqual(data.expires_at, null);
  await waitUntil(async () => (await get(server, data.url)).includes('hello from the sandbox'), {
    what: 'the page',
    timeoutMs: 60_000,
  });
  assert.equal((await agent.call('sandbox_preview_url', { port: 8000 })).data.is_listening, true);
}

/** Names below the domain of the test lead nowhere; the server reads the Host header. Follows one redirection, with its cookie. */
async function get(server: TestServer, address: string, cookie = ''): Promise<string> {
  const url = new URL(address);
  const outgoing = request({
    host: '127.0.0.1',
    port: new URL(server.url).port,
    path: `${url.pathname}${url.search}`,
    headers: { host: url.host, cookie },
  }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const body = await text(response);
  const { location, 'set-cookie': cookies = [] } = response.headers;
  if (location === undefined || cookie !== '') return body;
  const given = cookies.map((line) => line.split(';')[0]).join('; ');
  return await get(server, new URL(location, url).href, given);
}

async function takeSnapshots(agent: Agent, word: string): Promise<void> {
  const snapshot = `kept-${word}`;
  await agent.call('sandbox_stop');
  const made = await agent.call('sandbox_create_snapshot', { snapshot });
  assert.deepEqual([made.data.name, made.data.size_bytes > 0], [snapshot, true]);
  assert.match(await agent.fail('sandbox_create_snapshot', { snapshot }), /exists already/);
  const sandbox = `copy-${word}`;
  const begun = await agent.call('sandbox_start_from_snapshot', {
    sandbox,
    snapshot,
    memory: 128,
    envs: ['COLOR=red'],
  });
  assert.equal(begun.text, `Sandbox ${sandbox} started successfully`);
  const page = await agent.call('sandbox_read_file', { sandbox, path: '/srv/www/index.html' });
  assert.equal(page.text, 'hello from the sandbox');
  const shell = { sandbox, command: 'sh', args: ['-c', 'echo $COLOR'] };
  assert.equal((await agent.call('sandbox_run_command', shell)).text, 'red\n');
  const { data: list } = await agent.call('sandbox_list_snapshots', { sandbox: undefined });
  assert.ok(list.snapshots.some(({ name }: { name: string }) => name === snapshot));
  await agent.call('sandbox_remove', { sandbox });
  await agent.call('sandbox_remove_snapshot', { sandbox: undefined, snapshot });
  assert.match(
    await agent.fail('sandbox_start_from_snapshot', { snapshot, sandbox: 'other' }),
    /sandbox_list_snapshots/,
  );
}

async function lookAndRemove(agent: Agent, name: string): Promise<void> {
  const reason = await agent.fail('sandbox_read_file', { path: '/srv/dot.png' });
  assert.match(reason, /is stopped; start it with sandbox_start/);
  await agent.call('sandbox_start');
  const log = await agent.call('sandbox_read_logs', { sources: ['system'], tail: 50 });
  assert.match(log.text, /^\S+Z system .*\n/);
  const later = await agent.call('sandbox_read_logs', {
    cursor: log.data.next_cursor,
    sources: ['system'],
  });
  assert.match(later.text, /^\[read on with cursor ".*"\]$/);
  await agent.call('sandbox_get_metrics');
  const { data: listed } = await agent.call('sandbox_list_images', { sandbox: undefined });
  assert.ok(
    listed.images.some(({ references }: { references: string[] }) =>
      references.includes('docker.io/library/python:latest'),
    ),
    JSON.stringify(listed),
  );
  const sandboxes = async () =>
    (await agent.call('sandbox_list', { sandbox: undefined })).data.sandboxes as {
      name: string;
      status: string;
      image: string;
    }[];
  const own = (await sandboxes()).find((sandbox) => sandbox.name === name);
  assert.deepEqual([own?.status, own?.image], ['running', 'python']);
  await agent.call('sandbox_remove');
  await waitUntil(
    async () => !(await sandboxes()).some((sandbox) => sandbox.name === name),
    'the sandbox is gone',
  );
}
