import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  MAX_FORM_BYTES,
  MAX_RESULTS,
  MAX_RESULTS_BYTES,
  TABLE_TYPE,
  type CodeRunResult,
} from '@svc/contract';
import { pino } from 'pino';
import { TestSandbox } from '../testing/code-sandbox.ts';
import { runAndListen, type ListenedRun } from '../testing/run-results.ts';
import { createCodeRunner } from './code-runner.ts';
import type { Language } from './languages.ts';
import { ResultReader } from './result-reader.ts';

const PNG = 'iVBORw0KGgo=';

let sandbox: TestSandbox;
let runner: ReturnType<typeof createCodeRunner>;
before(async () => {
  sandbox = await TestSandbox.start();
  const openChannel = (_id: string, signal: AbortSignal) => sandbox.openChannel(signal);
  runner = createCodeRunner({ openChannel, logger: pino({ level: 'silent' }), killMs: 60_000 });
});
after(async () => {
  runner.close();
  await sandbox.stop();
});

const run = async (language: Language, code: string, timeoutMs?: number): Promise<ListenedRun> =>
  await runAndListen(runner, { sandboxId: 'box', language, code }, timeoutMs);
const python = async (code: string, timeoutMs?: number) => await run('python', code, timeoutMs);
const node = async (code: string, timeoutMs?: number) => await run('node', code, timeoutMs);

function formOf(result: Pick<CodeRunResult, 'data'> | undefined, type: string): string {
  const form = result?.data[type];
  return typeof form === 'string' ? form : '';
}

test('displayed results are in order with printed output, and the value of the last expression comes last', async () => {
  const codes = {
    python: 'print("a"); display({"x": [1, None]}); print("b"); "end"',
    node: 'console.log("a"); display({ x: [1, null] }); console.log("b"); "end"',
  };
  for (const language of ['python', 'node'] as const) {
    const { order, results, result } = await run(language, codes[language]);
    const shown = language === 'python' ? "{'x': [1, None]}" : '{ x: [ 1, null ] }';
    assert.deepEqual(order, [`a\n${shown}\n`, 'application/json text/plain', "b\n'end'\n", 'text/plain']);
    assert.deepEqual(
      results.map(({ is_main_result: isMain }) => isMain),
      [false, true],
    );
    assert.deepEqual(results[0]?.data, { 'text/plain': shown, 'application/json': { x: [1, null] } });
    assert.equal(result, "'end'");
  }
});

test('values are shown in the forms that they have (python)', async () => {
  const { results } = await python(`
class Rich:
    def _repr_html_(self): return "<b>x</b>"
    def _repr_markdown_(self): return "**x**", {"size": 1}
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n"
    def _repr_jpeg_(self): return b"not asked for: there is a PNG"
    def _repr_pdf_(self): return b"%PDF-"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"x": 1}
    def __repr__(self): return "Rich"
class Bundled:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "other", "application/vnd.chart+json": {"mark": "bar"}}, {"application/vnd.chart+json": {"w": 2}}
    def __getattr__(self, name): return lambda *_: "anything"
    def __repr__(self): return "Bundled"
display(Rich, Bundled())
Rich()`);
  assert.deepEqual(results[0]?.data, { 'text/plain': "<class '__main__.Rich'>" });
  assert.deepEqual(results[1]?.data, {
    'text/plain': 'Bundled',
    'application/vnd.chart+json': { mark: 'bar' },
  });
  assert.deepEqual(results[1].metadata, { 'application/vnd.chart+json': { w: 2 } });
  assert.deepEqual(results[2], {
    data: {
      'text/plain': 'Rich',
      'text/html': '<b>x</b>',
      'text/markdown': '**x**',
      'image/svg+xml': '<svg/>',
      'image/png': PNG,
      'application/pdf': 'JVBERi0=',
      'text/latex': '$x$',
      'application/json': { x: 1 },
    },
    metadata: { 'text/markdown': { size: 1 } },
    is_main_result: true,
    truncated: false,
    left_out: [],
  });
});

test('values are shown in the forms that they have (node)', async () => {
  const { results, stdout } = await node(`
display.html('<b>x</b>');
display({ 'text/markdown': '**x**', 'text/plain': 'x' }, { raw: true });
display({ [Symbol.for('Jupyter.display')]: () => ({ 'image/svg+xml': '<svg/>' }), kept: 1 });
display(new Map([[1, 2]]));
display({ when: new Date(0) });
Buffer.from('${PNG}', 'base64')`);
  const [html, markdown, own, map, date, image] = results.map(({ data }) => data);
  assert.deepEqual(html, { 'text/html': '<b>x</b>' });
  assert.deepEqual(markdown, { 'text/markdown': '**x**', 'text/plain': 'x' });
  assert.equal(own?.['image/svg+xml'], '<svg/>');
  assert.deepEqual(map, { 'text/plain': 'Map(1) { 1 => 2 }' });
  assert.deepEqual(Object.keys(date ?? {}), ['text/plain']);
  assert.equal(image?.['image/png'], PNG);
  assert.match(stdout, /^x\n/);
});

test('a form that fails is left out with the reason; the others are there', async () => {
  const { status, results, truncated } = await python(`
class Odd:
    def _repr_html_(self): raise ValueError("no html")
    def _repr_markdown_(self): return 5
    def _repr_json_(self):
        nested = []
        for _ in range(100000): nested = [nested]
        return nested
    def _repr_latex_(self): exit(3)
    def __repr__(self): return "Odd"
Odd()`);
  assert.deepEqual([status, truncated], ['success', true]);
  assert.deepEqual(results[0]?.data, { 'text/plain': 'Odd' });
  const why = Object.fromEntries(results[0].left_out.map(({ type, message }) => [type, message]));
  assert.match(why['text/html'] ?? '', /ValueError: no html/);
  assert.match(why['text/markdown'] ?? '', /neither text nor bytes/);
  assert.match(why['application/json'] ?? '', /RecursionError/);
  assert.match(why['text/latex'] ?? '', /SystemExit/);
});

test('a form that takes for ever is interrupted by the timeout, and the state is kept', async () => {
  const slow =
    'class Slow:\n    def _repr_html_(self):\n        while True: pass\n    def __repr__(self): return "Slow"\nkept = 41\nSlow()';
  const { status, results } = await python(slow, 1000);
  assert.equal(status, 'timeout');
  // The text was shown before; the answer has it.
  assert.deepEqual(results[0]?.data, { 'text/plain': 'Slow' });
  assert.equal((await python('kept + 1')).result, '42');
});

test('forms that are too large, and results that are too many, are left out with a mark', async () => {
  const large = await python(`
class Large:
    def _repr_html_(self): return "x" * ${MAX_FORM_BYTES}
    def _repr_latex_(self): return "y" * ${MAX_FORM_BYTES - 2}
    def __repr__(self): return "z" * ${2 << 20}
Large()`);
  const [shown] = large.results;
  assert.equal(formOf(shown, 'text/plain').length, 1 << 20);
  assert.equal(formOf(shown, 'text/latex').length, MAX_FORM_BYTES - 2);
  assert.deepEqual(
    shown?.left_out.map(({ type, bytes, reason }) => [type, bytes, reason]),
    [
      ['text/plain', 2 << 20, 'too_large'],
      ['text/html', MAX_FORM_BYTES + 2, 'too_large'],
    ],
  );
  assert.match(shown.left_out[1]?.message ?? '', /write it to a file and download that/);
  assert.equal(large.truncated, true);

  const flood = 'for (let i = 0; i < 1000; i += 1) display.html("h".repeat(100_000))';
  for (const language of ['python', 'node'] as const) {
    const code =
      language === 'node' ? flood : 'for i in range(1000): display({"text/html": "h" * 100000}, raw=True)';
    const { results, truncated, status } = await run(language, code);
    assert.deepEqual([results.length, truncated, status], [MAX_RESULTS, true, 'success']);
    const sum = results.reduce((bytes, { data }) => bytes + formOf({ data }, 'text/html').length, 0);
    assert.ok(sum > MAX_RESULTS_BYTES - 200_000 && sum <= MAX_RESULTS_BYTES);
    assert.equal(results.at(-1)?.left_out[0]?.reason, 'too_many');
    assert.equal((await run(language, '40 + 2')).result, '42');
  }
});

test('code that forges results gets at most what it could have shown', async () => {
  const forge = (bytes: string) => `
import os
results = display.__globals__["results"]
def piece(data, header=None):
    os.write(1, results.mark + (len(data) if header is None else header).to_bytes(4, "big") + data)
${bytes}
print("over")`;
  for (const bytes of [
    'piece(b"not json")',
    'piece(b"[]")',
    'piece(b"null")',
    'piece(b"[" * 4000)',
    'piece(b"x", 0x7fffffff)',
    'piece(b"", 4000)',
    'piece(b"{}", 0x80000002)',
    'for _ in range(5000): piece(b"x" * 4000, 0x80000000 + 4000)\npiece(b"")',
    'piece(b\'{"data":{"image/png":"<script>","text/html":5,"__proto__":{"x":1},"no type":"x"},"left_out":[5,{"type":7}],"metadata":[]}\')',
    'piece(b\'{"data":{"application/json":\' + b"[" * 1900 + b"]" * 1900 + b"}}")',
  ]) {
    const { status, stdout, results, stderr } = await python(forge(bytes));
    assert.equal(status, 'success', stderr);
    assert.match(stdout, /over\n$/);
    assert.ok(results.every(({ data }) => Object.keys(data).length === 0));
    assert.equal((await python('40 + 2')).result, '42');
  }
});

test('short results that are expensive to parse are left out, and those after them are read', () => {
  const many = (part: string, count: number) => `[${Array.from({ length: count }, () => part).join()}]`;
  const costlyForms = [
    many('{}', 200_000),
    many('[[]]', 60_000),
    `${'['.repeat(100)}${']'.repeat(100)}`,
    many('1', 600_000),
  ];
  for (const form of costlyForms) {
    const reader = new ResultReader();
    const costly = Buffer.from(`{"data":{"application/json":${form},"text/plain":"x"}}`);
    const result = reader.read(costly);
    const [leftOut] = result?.left_out ?? [];
    const forms = Object.keys(result?.data ?? {});
    assert.deepEqual([forms, leftOut?.type, leftOut?.reason], [[], '*/*', 'too_many']);
    assert.equal(reader.isTruncated, true);
    assert.deepEqual(reader.read(Buffer.from('{"data":{"text/plain":"y"}}'))?.data, { 'text/plain': 'y' });
  }
  const reader = new ResultReader();
  const fair = Buffer.from(`{"data":{"application/json":${many('{"x":1}', 20_000)}}}`);
  const shown = Array.from({ length: 4 }, () => Object.keys(reader.read(fair)?.data ?? {}).length);
  assert.deepEqual(shown, [1, 1, 0, 0], 'all results of a run have as many parts together');
  const numbers = Buffer.from(`{"data":{"application/json":${many('7', 200_000)}}}`);
  const other = new ResultReader();
  const listed = Array.from({ length: 4 }, () => Object.keys(other.read(numbers)?.data ?? {}).length);
  assert.deepEqual(listed, [1, 1, 0, 0], 'and as many elements');
});

test('an invalid table and invalid base64 are left out, also when user code sends them', () => {
  const table = { columns: [{ name: 'n', type: 'integer' }], rows: [[7]], row_count: 1, truncated: false };
  const read = (type: string, form: unknown) =>
    Object.values(
      new ResultReader().read(Buffer.from(JSON.stringify({ data: { [type]: form } })))?.data ?? {},
    );
  for (const form of [
    null,
    5,
    [],
    {},
    { ...table, columns: 5 },
    { ...table, columns: [{ name: { a: 1 }, type: 'x' }] },
    { ...table, rows: [{ length: 5 }] },
    { ...table, rows: [[{ a: 1 }]] },
    { ...table, rows: [Array.from({ length: 300 }, () => 1)] },
    { ...table, rows: Array.from({ length: 1001 }, () => [1]) },
    { ...table, row_count: '1' },
    { ...table, more: 1 },
  ])
    assert.deepEqual(read(TABLE_TYPE, form), [], JSON.stringify(form).slice(0, 80));
  assert.deepEqual(read(TABLE_TYPE, table), [table]);
  for (const form of ['A', 'AAAAA', 'AA=', 'AAA==', '====', 'AAAA=', 'AA AA A'])
    assert.deepEqual(read('application/pdf', form), [], form);
  for (const form of ['', 'AA', 'AA==', 'AAA', 'AAA=', 'AAAA'])
    assert.deepEqual([read('image/png', form), typeof atob(form)], [[form], 'string']);
});

test('results of threads and forked children after the end are printed as text and disturb no later run', async () => {
  const { results, stdout } = await python(`
import os, threading
if os.fork() == 0:
    display("child"); os._exit(0)
os.wait()
go = threading.Event()
def late():
    go.wait(); display("late")
thread = threading.Thread(target=late); thread.start()
display("now")`);
  assert.deepEqual(
    results.map(({ data }) => data['text/plain']),
    ["'now'"],
  );
  assert.match(stdout, /'child'\n/);
  const { results: next, stdout: printed } = await python('go.set(); thread.join(); print("end")');
  assert.match(printed, /'late'\nend\n/);
  // While a unit runs, what a thread shows is one of its results.
  assert.equal(next.length, 1);
});

test('results of several threads at once are all whole', async () => {
  const { results, status } = await python(`
import threading
def work(n):
    for i in range(10): display({"text/html": str(n) * 50000}, raw=True)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]; None`);
  assert.equal(status, 'success');
  assert.equal(results.length, 40);
  for (const { data } of results) assert.match(formOf({ data }, 'text/html'), /^(\d)\1{49999}$/);
});

test('an exception says where in the code it came from', async () => {
  const failed = await python('import json\ndef f(text):\n    return json.loads(text)\nf("{")');
  const { name, frames, traceback } = failed.exception ?? {};
  assert.equal(name, 'JSONDecodeError');
  assert.deepEqual(
    frames?.map(({ line, function: inside, source }) => [line, inside, source]),
    [
      [4, '<module>', 'f("{")'],
      [3, 'f', 'return json.loads(text)'],
    ],
  );
  assert.match(traceback ?? '', /json\/decoder/);
  const thrown = await node('function g() {\n  throw new RangeError("no");\n}\ng();');
  assert.deepEqual(
    thrown.exception?.frames.map(({ line, function: inside, source }) => [line, inside, source]),
    [
      [4, '<module>', 'g();'],
      [2, 'g', 'throw new RangeError("no");'],
    ],
  );
  assert.deepEqual(
    (await python('x = (1,\ny = 2')).exception?.frames.map(({ line }) => line),
    [1],
  );
});
