import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { useCli } from './cli-line.ts';
import { importPython } from '../engine/interpreter-images.ts';

const cli = useCli(async (svc) => {
  await importPython(svc.server.engine);
  return await svc.succeed(['run', '-d', '--name', 'box', 'python', 'sleep', '100000']);
});
const PNG = 'iVBORw0KGgo=';

test('code runs from the command line, from a file and from stdin, and its state stays', async () => {
  const { svc } = cli;
  assert.equal(await svc.succeed(['code', 'box', 'x = 41; print("set")']), 'set\n');
  await writeFile(join(svc.home, 'add.py'), 'x += 1\nx');
  assert.equal(await svc.succeed(['code', 'box', '--file', 'add.py']), '42\n');
  assert.equal(await svc.succeed(['code', 'box'], 'x * 2'), '84\n');
  const { status, result } = await svc.json<{ status: string; result: string }>(['code', 'box', 'x']);
  assert.deepEqual([status, result], ['success', '42']);
});

test('code runs in a named context, which keeps its definitions', async () => {
  const { svc } = cli;
  const client = new Client({ apiUrl: svc.server.url, apiKey: svc.env['SVC_API_KEY'] ?? '' });
  const box = await Sandbox.connect('box', { client });
  await box.contexts.create({ name: 'notes', language: 'python' });
  await svc.succeed(['code', 'box', '--code-context', 'notes', 'only_here = 7']);
  assert.equal(await svc.succeed(['code', '--code-context', 'notes', 'box', 'only_here']), '7\n');
  assert.match((await svc.run(['code', 'box', 'only_here'])).stderr, /NameError/);
});

test('failed code sets the exit code, with the traceback on stderr', async () => {
  const { svc } = cli;
  const raised = await svc.run(['code', 'box', '1 / 0']);
  assert.equal(raised.code, 1);
  assert.match(raised.stderr, /line 1, in <module>\n.*\n.*ZeroDivisionError: division by zero\n$/s);
  const late = await svc.run(['code', '--timeout', '1', 'box', 'while True: pass']);
  assert.equal(late.code, 124);
  const missing = await svc.run(['code', '-l', 'javascript', 'box', '1']);
  assert.equal(missing.code, 126);
  assert.match(missing.stderr, /'node' is not in the sandbox/);
  const kernel = await svc.run(['code', '--kernel', 'ir', 'box', '1']);
  assert.equal(kernel.code, 126);
  assert.match(kernel.stderr, /Jupyter kernel 'ir' .* could not be started: .*no Jupyter client/);
  assert.equal((await svc.run(['code', 'box', '1', '--file', 'x'])).code, 2);
});

test('charts and HTML are written to files that are named, or their types are', async () => {
  const { svc } = cli;
  const code = `display({"image/png": "${PNG}"}, raw=True)\ndisplay({"text/html": "<b>x</b>"}, raw=True)\n"text"`;
  const named = await svc.run(['code', 'box', code]);
  assert.equal(named.stderr, '[image/png: --save-results DIR writes it to a file]\n');
  const saved = await svc.run(['code', '--save-results', 'out', 'box', code]);
  assert.equal(saved.stdout, "'text'\n");
  assert.equal(saved.stderr, '[image/png: out/1.png]\n[text/html: out/2.html]\n');
  const folder = join(svc.home, 'out');
  assert.deepEqual((await readdir(folder)).toSorted(), ['1.png', '2.html']);
  assert.equal((await readFile(join(folder, '1.png'))).toString('base64'), PNG);
  assert.equal(await readFile(join(folder, '2.html'), 'utf8'), '<b>x</b>');
});
