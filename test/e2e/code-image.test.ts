import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, Sandbox, SvcError, type CodeRunResult } from '@svc/sdk';
import { connectClient } from '../../packages/server/src/testing/mcp-client.ts';
import { openBrowser } from '../clients/open-browser.ts';
import { buildDashboard } from '../dashboard/dashboard-fixture.ts';
import { addKernels } from './echo-kernel.ts';
import { addDemoImages } from './demo-images.ts';
import { TestServer } from './start-server.ts';

const PNG_HEAD = '89504e470d0a1a0a';
const CHART = 'import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title("Squares")';
const FRAME =
  'import pandas as pd\npd.DataFrame({"n": [1, 2], "x": [0.5, None], "s": ["a", "b"], "t": pd.to_datetime(["2020-01-01", None])}, index=pd.Index(["r1", "r2"], name="row"))';

let server: TestServer;
let client: Client;

// Once for the whole file: it takes minutes.
before(async () => {
  server = await TestServer.start();
  await addDemoImages(server.engine, 'code');
  client = new Client({ apiUrl: server.url, maxRetries: 0 });
});
after(() => server.destroy());

/** What is beside the text. */
function rich(results: readonly CodeRunResult[]): readonly CodeRunResult[] {
  return results.filter(({ data }) => Object.keys(data).some((type) => type !== 'text/plain'));
}

function assertPng(bytes: Uint8Array | undefined): void {
  const image = Buffer.from(bytes ?? []);
  assert.equal(image.toString('hex', 0, 8), PNG_HEAD);
  assert.ok(image.readUInt32BE(16) > 100 && image.readUInt32BE(20) > 100, 'it is too small for a chart');
}

async function makeBox(isolation: 'container' | 'gvisor'): Promise<Sandbox> {
  return await Sandbox.create({
    client,
    name: `code-${isolation}`,
    image: 'code',
    isolation,
    memoryMib: 1024,
  });
}

/** What is no different in another class is tried in one of them below. */
for (const isolation of ['container', 'gvisor'] as const) {
  describe(`charts and kernels of the image code on ${isolation}`, { concurrency: false }, () => {
    let box: Sandbox;
    before(async () => {
      box = await makeBox(isolation);
    });
    after(() => box.remove());

    test('the chart of each kind is data, too', async () => {
      const kindOf = async (line: string) => {
        const { results } = await box.runCode(`import matplotlib.pyplot as plt\n${line};`);
        return rich(results)[0]?.chart;
      };
      const bars = await kindOf('plt.bar(["a", "b"], [3, 4], label="g"); plt.ylabel("Revenue ($)")');
      assert.partialDeepStrictEqual(bars, {
        type: 'bar',
        y_label: 'Revenue',
        y_unit: '$',
        elements: [
          { label: 'a', group: 'g', value: 3 },
          { label: 'b', group: 'g', value: 4 },
        ],
      });
      const pie = await kindOf('plt.pie([1, 3], labels=["x", "y"])');
      assert.partialDeepStrictEqual(pie, {
        type: 'pie',
        elements: [{ label: 'x', angle: 90 }, { label: 'y' }],
      });
      const scatter = await kindOf('plt.scatter([1, 2], [3, 4])');
      assert.partialDeepStrictEqual(scatter, {
        type: 'scatter',
        elements: [
          {
            points: [
              [1, 3],
              [2, 4],
            ],
          },
        ],
      });
      const box1 = await kindOf('plt.boxplot([[1, 2, 3, 4, 100]])');
      assert.partialDeepStrictEqual(box1, {
        type: 'box_and_whisker',
        elements: [{ median: 3, max: 4, outliers: [100] }],
      });
      const two = await kindOf('plt.subplot(121); plt.plot([1]); plt.subplot(122); plt.bar([1], [2])');
      assert.partialDeepStrictEqual(two, {
        type: 'superchart',
        elements: [{ type: 'line' }, { type: 'bar' }],
      });
    });

    test('a chart arrives as PNG without a request for it, in the SDK and over REST', async () => {
      const seen: CodeRunResult[] = [];
      const onResult = (result: CodeRunResult) => void seen.push(result);
      const { results, error } = await box.runCode(CHART, { language: 'python', onResult });
      assert.equal(error, '');
      assert.deepEqual(seen, results);
      const [chart, ...more] = rich(results);
      assert.deepEqual(more, []);
      assertPng(chart?.png);
      assert.partialDeepStrictEqual(chart?.chart, {
        type: 'line',
        title: 'Squares',
        x_scale: 'linear',
        elements: [
          {
            points: [
              [0, 1],
              [1, 4],
              [2, 9],
            ],
          },
        ],
      });
      const response = await fetch(`${server.url}/v1/sandboxes/${box.id}/code`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ language: 'python', code: CHART }),
      });
      const body = (await response.json()) as { results: { data: Record<string, string> }[] };
      const images = body.results.flatMap(({ data }) => data['image/png'] ?? []);
      assert.equal(images.length, 1);
      assertPng(Buffer.from(images[0] ?? '', 'base64'));
    });

    test('programs of a demo image find their locale in one file', async () => {
      const found = await box.exec('/bin/sh', ['-c', 'localedef --list-archive; locale charmap']);
      assert.equal(found.text(), 'C.utf8\nUTF-8\n');
    });

    test('the Jupyter kernel of the image runs code: its results, its errors and its state', async () => {
      const kernel = await box.contexts.create({ kernel: 'python3', name: 'notebook', cwd: '/tmp' });
      assert.deepEqual([kernel.info.kernel, kernel.info.language], ['python3', null]);
      const first = await kernel.runCode('import os; kept = 41; print("said"); os.getcwd()');
      assert.deepEqual([first.output, first.result, first.error], ["said\n'/tmp'\n", "'/tmp'", '']);
      const chart = await kernel.runCode(CHART);
      assertPng(rich(chart.results)[0]?.png);
      assert.match((await kernel.runCode(FRAME)).results[0]?.html ?? '', /<table/);
      const failed = await kernel.runCode('1 / 0');
      assert.deepEqual([failed.status, failed.exception?.name], ['error', 'ZeroDivisionError']);
      // Without the colours of a terminal.
      assert.equal(failed.error.includes('\u001B'), false);
      assert.match((await kernel.runCode('input()')).exception?.message ?? '', /does not support input/);
      const late = await kernel.runCode('import time\ntime.sleep(1000)', { timeoutMs: 2000 });
      assert.equal(late.status, 'timeout');
      assert.equal((await kernel.runCode('%time kept + 1')).result, '42');
      await kernel.restart();
      assert.equal((await kernel.runCode('kept')).exception?.name, 'NameError');
      await kernel.remove();
    });
  });
}

describe('results of the image code', { concurrency: false }, () => {
  let box: Sandbox;
  before(async () => {
    box = await makeBox('container');
  });
  after(() => box.remove());

  test('plt.show() shows at once, open figures come at the end, and each figure once', async () => {
    const order: string[] = [];
    await box.runCode(
      'import matplotlib.pyplot as plt\nprint("one"); plt.plot([1, 2]); plt.show()\nprint("two"); fig, ax = plt.subplots(); ax.bar([1], [2])\nprint("three")\nfig',
      {
        language: 'python',
        onStdout: (text) => order.push(...text.trim().split('\n')),
        onResult: ({ data }) => order.push(data['image/png'] === undefined ? 'other' : 'chart'),
      },
    );
    assert.deepEqual(order, ['one', 'chart', 'two', 'three', '<Figure size 640x480 with 1 Axes>', 'chart']);
  });

  test('a frame arrives as HTML and as data, an image of Pillow as PNG', async () => {
    const { results } = await box.runCode(FRAME, { language: 'python' });
    assert.match(results[0]?.html ?? '', /<table/);
    assert.deepEqual(results[0]?.table, {
      columns: [
        { name: 'row', type: 'string' },
        { name: 'n', type: 'integer' },
        { name: 'x', type: 'number' },
        { name: 's', type: 'string' },
        { name: 't', type: 'datetime' },
      ],
      rows: [
        ['r1', 1, 0.5, 'a', '2020-01-01T00:00:00'],
        ['r2', 2, null, 'b', null],
      ],
      row_count: 2,
      truncated: false,
    });
    const long = await box.runCode('pd.DataFrame({"n": range(5000)})', { language: 'python' });
    const { rows, row_count: count, truncated } = long.results[0]?.table ?? {};
    assert.deepEqual([rows?.length, count, truncated], [1000, 5000, true]);
    const image = await box.runCode('from PIL import Image\nImage.new("RGB", (200, 150), "red")', {
      language: 'python',
    });
    assertPng(image.results[0]?.png);
  });

  test('a kernel that dies is replaced, one that is not there is named', async () => {
    const died = await box.runCode('import os; print("last", flush=True); os._exit(3)', {
      kernel: 'python3',
    });
    assert.equal(died.status, 'error');
    assert.match(died.error, /kernel 'python3' has ended(.|\n)*its state is lost/);
    assert.equal((await box.runCode('6 * 7', { kernel: 'python3' })).result, '42');
    const left = await box.commands.run('sh', ['-c', 'ls -d /tmp/svc-kernel-* | wc -l']);
    assert.equal(left.text().trim(), '0', 'the key of a kernel is removed once it is known');
    await assert.rejects(box.runCode('1', { kernel: 'cobol' }), (error) => {
      assert.ok(SvcError.is(error, 'exec_failed'), String(error));
      assert.match(error.message, /no Jupyter kernel 'cobol' in this image; there are: python3/);
      return true;
    });
    await assert.rejects(box.runCode('1', { kernel: 'python3', language: 'python' }), /kernel/);
  });

  test('a chart arrives as PNG over MCP and in the dashboard', async (t) => {
    const { client: agent } = await connectClient(t, server.url);
    const input = { sandbox: box.name, language: 'python', code: CHART };
    const answer = await agent.callTool({ name: 'sandbox_run_code', arguments: input });
    const content = answer.content as readonly { type: string; data?: string; mimeType?: string }[];
    const images = content.filter(({ type }) => type === 'image');
    assert.deepEqual(
      images.map(({ mimeType }) => mimeType),
      ['image/png'],
    );
    assertPng(Buffer.from(images[0]?.data ?? '', 'base64'));
    await buildDashboard();
    const page = await openBrowser(t, `${server.url}/orgs/default/sandboxes/${box.id}/code`);
    page.setDefaultTimeout(60_000);
    await page.getByLabel('Code', { exact: true }).fill(CHART);
    await page.getByLabel('Code', { exact: true }).press('Control+Enter');
    await page.getByText('Finished.').waitFor();
    const sizes = `[...document.querySelectorAll('.result img')].map((image) => [image.src.slice(0, 15), image.naturalWidth > 100])`;
    assert.deepEqual(await page.evaluate(sizes), [['data:image/png;', true]]);
  });

  test('any kernel is a language: its values, pictures, errors and ends', async () => {
    await addKernels(box);
    const echo = await box.contexts.create({ kernel: 'echo', name: 'echo' });
    assert.equal((await echo.runCode('hello')).result, '1 hello');
    const [shown] = rich((await echo.runCode('show')).results);
    assert.deepEqual(Object.keys(shown?.data ?? {}).toSorted(), [
      'application/json',
      'image/png',
      'text/plain',
    ]);
    const failed = await echo.runCode('fail');
    const { status, exception, error } = failed;
    assert.deepEqual([status, exception?.name, error], ['error', 'EchoError', 'EchoError: no\n']);
    const asked = await echo.runCode('ask');
    assert.deepEqual([asked.status, asked.exception?.name], ['error', 'InputRefused']);
    const began = Promise.withResolvers<void>();
    const waiting = echo.runCode('wait', { onStdout: () => began.resolve() });
    await Promise.race([began.promise, waiting]);
    await echo.interrupt();
    assert.equal((await waiting).status, 'interrupted');
    assert.equal((await echo.runCode('still there')).result, '6 still there');
    assert.match((await echo.runCode('die')).error, /kernel 'echo' has ended(.|\n)*its state is lost/);
    assert.equal((await echo.runCode('again')).result, '1 again');
    await assert.rejects(box.runCode('1', { kernel: 'broken' }), (failure) => {
      assert.ok(SvcError.is(failure, 'exec_failed'), String(failure));
      assert.match(failure.message, /it has no licence/);
      return true;
    });
    const over = { sandbox: box.name, language: 'kernel:echo', code: 'over JSON-RPC' };
    const { result } = await server.call('sandbox.repl.run', over);
    assert.deepEqual(result, {
      status: 'success',
      language: 'kernel:echo',
      output: '1 over JSON-RPC\n',
      error: '',
      has_error: false,
    });
  });
});
