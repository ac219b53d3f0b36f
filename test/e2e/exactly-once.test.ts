import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

/** The time between the calls and the kill. How far the calls got by then is random on purpose. */
const DELAYS_MS = [0, 50, 200];
const LINES = 1000;
const INPUT = `${'x'.repeat(299_999)}\n`;

interface Reply {
  readonly status: number;
  readonly text: string;
}

for (const isolation of ['container', 'gvisor']) {
  describe(`one key, one run, on ${isolation}`, { concurrency: false }, () => {
    let server: TestServer;
    let box: Sandbox;
    before(async () => {
      const port = await freePort();
      const args = ['--dev', '--port', String(port)];
      server = await TestServer.start({ args, engineArgs: ['--isolation', isolation] });
      await importPython(server.engine);
      // Until the web process is back.
      const client = new Client({ apiUrl: server.url, maxRetries: 20 });
      box = await Sandbox.create({ client, name: 'box', image: 'python' });
      // Starts the interpreter, so that the kill hits a run and not this start.
      await box.runCode('1', { language: 'python' });
    });
    after(async () => {
      box?.close();
      await server?.destroy();
    });

    const post = async (path: string, key: string, body: string, type: string): Promise<Reply> => {
      const response = await fetch(`${server.url}/v1/sandboxes/${box.id}${path}`, {
        method: 'POST',
        headers: { 'content-type': type, 'idempotency-key': key },
        body,
      });
      return { status: response.status, text: await response.text() };
    };
    /** Repeats a call under the same key until it is answered. */
    const insist = async (path: string, body: string, type = 'application/json'): Promise<Reply> => {
      const key = randomUUID();
      let last = '';
      for (const deadline = Date.now() + 120_000; Date.now() < deadline; await delay(100)) {
        try {
          const reply = await post(path, key, body, type);
          // A stream has begun with 200 when it turns out that the engine is away.
          const isCut = /^event: error\ndata: {"error":{"code":"(orchestrator_unreachable|unavailable)"/m;
          if (reply.status < 500 && !isCut.test(reply.text)) return reply;
          last = reply.text;
        } catch (error) {
          // The server does not listen yet, or was killed.
          last = String(error);
        }
      }
      throw new Error(`${path} was never answered: ${last}`);
    };
    const killWeb = async () => {
      const web = await server.webPid();
      // SAFETY: 0 would be everything that runs this test.
      if (web > 0) process.kill(web, 'SIGKILL');
    };
    const killEngine = async () => {
      await server.engine.kill();
      await server.engine.launch();
    };
    /** The reader is ahead of the stored offsets while the engine is away. */
    const killBothAndServeFirst = async () => {
      await Promise.all([killWeb(), server.engine.kill()]);
      const serves = () =>
        fetch(`${server.url}/health`).then(
          () => true,
          () => false,
        );
      await waitUntil(serves, { timeoutMs: 60_000, what: 'the web process is back' });
      await delay(1000);
      await server.engine.launch();
    };
    const read = (path: string) => box.files.readText(path, { timeoutMs: 60_000 });

    test('a client that reads a long stream has every byte once, also when both are killed', async () => {
      const script = `i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo "line $i"; [ $((i % 50)) = 0 ] && sleep 0.1; done`;
      const job = await box.commands.startDetached('sh', ['-c', script]);
      let text = '';
      const reading = (async () => {
        for await (const piece of job.output()) {
          text +=
            piece.kind === 'data' ? Buffer.from(piece.data).toString() : `dropped ${piece.from}-${piece.to}`;
        }
      })();
      for (const line of [100, 400]) {
        await waitUntil(() => text.includes(`line ${line}\n`), { what: `line ${line}` });
        await killBothAndServeFirst();
      }
      await reading;
      assert.equal(text, Array.from({ length: LINES }, (_, index) => `line ${index + 1}\n`).join(''));
      assert.equal(job.info.exit?.reason, 'exit');
    });

    for (const [target, kill] of [
      ['engine', killEngine],
      ['web process', killWeb],
      ['engine and web process', () => Promise.all([killEngine(), killWeb()])],
    ] as const) {
      // Calls are repeated by server and engine; what the class adds shows when both are killed.
      if (isolation === 'gvisor' && target !== 'engine and web process') continue;
      test(`kill -9 of the ${target} at any moment`, async () => {
        for (const [index, delayMs] of DELAYS_MS.entries()) {
          const id = `${target.replaceAll(' ', '-')}-${index}`;
          const input = await box.commands.startDetached('sh', ['-c', `cat >> /tmp/in-${id}`], {
            hasStdin: true,
          });
          const start = { cmd: 'sh', args: ['-c', `echo run >> /tmp/process-${id}; exec sleep 1000`] };
          const python = `open('/tmp/code-${id}', 'a').write('run')\nimport time\ndisplay({'text/html': '<b>${id}</b>'}, raw=True)\ntime.sleep(0.2)\nprint('said ${id}')`;
          const code = JSON.stringify({ language: 'python', code: python });
          // Without output before its end: an interrupted run that has sent output is reported as interrupted.
          const quiet = `open('/tmp/held-${id}', 'a').write('run')\nimport time\ntime.sleep(0.2)`;
          const calls = Promise.all([
            insist('/processes', JSON.stringify(start)),
            insist(`/processes/${input.id}/stdin?close=true`, INPUT, 'application/octet-stream'),
            insist('/code', code),
            insist('/code/stream', code.replace('/tmp/code', '/tmp/stream')),
            // An unreachable engine ends a stream with an error, which the SDK passes on.
            kill === killWeb ? box.runCode(quiet, { language: 'python' }) : null,
          ]);
          await delay(delayMs);
          await kill();
          const [started, written, ran, streamed, held] = await calls;
          const where = `${target}, ${delayMs} ms`;
          for (const { status, text } of [started, written, ran, streamed])
            assert.equal(status, 200, `${where}: ${text}`);
          assert.equal(JSON.parse(ran.text).stdout, `said ${id}\n`, `${where}: ${ran.text}`);
          assert.deepEqual(JSON.parse(ran.text).results[0]?.data, { 'text/html': `<b>${id}</b>` }, where);
          assert.equal(streamed.text.split('event: result\n').length, 2, where);
          assert.match(
            streamed.text,
            new RegExp(`said ${id}.*\\n\\n(.*\\n)*event: end\\ndata: {"status":"success"`),
            where,
          );
          assert.deepEqual(JSON.parse(written.text), { bytes: INPUT.length }, where);
          assert.equal(await read(`/tmp/code-${id}`), 'run', `code ran more than once: ${where}`);
          assert.equal(await read(`/tmp/stream-${id}`), 'run', `streamed code ran more than once: ${where}`);
          if (held !== null) {
            assert.equal(held.status, 'success', where);
            assert.equal(
              await read(`/tmp/held-${id}`),
              'run',
              `code of the SDK ran more than once: ${where}`,
            );
          }
          await waitUntil(async () => (await read(`/tmp/process-${id}`).catch(() => '')) !== '', {
            what: 'it runs',
          });
          assert.equal(
            await read(`/tmp/process-${id}`),
            'run\n',
            `a process was started more than once: ${where}`,
          );
          await input.wait({ timeoutMs: 60_000 });
          assert.equal(
            (await read(`/tmp/in-${id}`)).length,
            INPUT.length,
            `input was lost or doubled: ${where}`,
          );
        }
      });
    }
  });
}
