import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { openClient, textOf, type McpClient } from '../../packages/server/src/testing/mcp-client.ts';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

for (const isolation of CLASSES) {
  describe(`long and failing calls of MCP with class ${isolation}`, { concurrency: false }, () => {
    let server: TestServer;
    let client: McpClient;
    before(async () => {
      server = await TestServer.start({ args: ['--dev'], engineArgs: ['--isolation', isolation] });
      await importPython(server.engine);
      ({ client } = await openClient(server.url));
    });
    after(async () => {
      await client.close();
      await server.destroy();
    });
    const call = async (name: string, input: object) => {
      const result = await client.callTool({ name, arguments: { sandbox: 'box', ...input } }, undefined, {
        timeout: 180_000,
      });
      return { text: textOf(result), isError: result.isError === true };
    };

    test('a command that is cancelled ends, and a waiting caller gets notices of progress', async () => {
      await call('sandbox_start', { config: { image: 'python', memory: 128 } });
      const cancel = new AbortController();
      const progress = Promise.withResolvers<string>();
      const input = { sandbox: 'box', command: 'sh', args: ['-c', 'echo $$ > /tmp/pid; exec sleep 1000'] };
      const running = client.callTool({ name: 'sandbox_run_command', arguments: input }, undefined, {
        signal: cancel.signal,
        timeout: 180_000,
        onprogress: ({ message = '' }) => progress.resolve(message),
      });
      assert.match(await progress.promise, /^running: \d+ s$/);
      const isAlive = async () =>
        (
          await call('sandbox_run_command', {
            command: 'sh',
            args: ['-c', 'kill -0 $(cat /tmp/pid) && echo yes'],
          })
        ).text.startsWith('yes');
      assert.ok(await isAlive());
      cancel.abort('enough');
      await assert.rejects(running);
      await waitUntil(async () => !(await isAlive()), { what: 'the command ends', timeoutMs: 60_000 });
    });

    test('an interpreter whose code ran out of time is used again, by code and by commands', async () => {
      await call('sandbox_start', { config: { image: 'python', memory: 128 } });
      const run = (code: string, timeout: number | null = null) =>
        call('sandbox_run_code', { language: 'python', code, timeout });
      await run('kept = 41');
      const deaf = 'import time\nwhile True:\n  try: time.sleep(1000)\n  except BaseException: pass';
      for (const [code, isKept] of [
        ['import time; time.sleep(1000)', true],
        ['import subprocess; subprocess.run(["sleep", "1000"])', true],
        ['while True: pass', true],
        [deaf, false],
      ] as const) {
        const late = await run(code, 1);
        assert.match(
          late.text,
          isKept ? /Interrupted after 1 s; the state is kept/ : /was killed; its state is lost/,
          code,
        );
        const next = await run(isKept ? 'kept + 1' : '6 * 7');
        assert.deepEqual([next.isError, next.text], [false, '42\n'], code);
      }
      const command = await call('sandbox_run_command', { command: 'echo', args: ['on'] });
      assert.equal(command.text, 'on\n');
    });

    test('error messages lead from out of memory to a larger sandbox', async () => {
      const need = { language: 'python', code: 'x = bytearray(300 * 1024 * 1024); len(x)' };
      await call('sandbox_start', { config: { image: 'python', memory: 128 } });
      let answer = await call('sandbox_run_code', need);
      for (let step = 0; answer.isError || !answer.text.startsWith('314572800'); step++) {
        assert.ok(step < 6, `in a circle: ${answer.text}`);
        if (/[Cc]all sandbox_stop/.test(answer.text)) await call('sandbox_stop', {});
        assert.match(answer.text, /sandbox_start|config\.memory/);
        const started = await call('sandbox_start', { config: { image: 'python', memory: 1024 } });
        answer = started.isError ? started : await call('sandbox_run_code', need);
      }
    });
  });
}
