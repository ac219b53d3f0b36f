import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { connectClient, textOf } from '../../packages/server/src/testing/mcp-client.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer, type RpcEnvelope } from './start-server.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const MEMORY_MIB = 96;
/** More than the sandbox may have, and every byte is written. */
const GREED = "x = b'x' * (400 * 1024 * 1024)\nprint(len(x))";
/** The same, after it has said something. */
const PRINTING = `import sys\nprint('before', flush=True)\nprint('aside', file=sys.stderr, flush=True)\n${GREED}`;
const KILLED = 137;

/** gVisor's kernel is one process: with it everything in the sandbox ends. Elsewhere the greedy process does. */
for (const isolation of ['gvisor', 'container'] as const) {
  const isWhole = isolation === 'gvisor';
  describe(`a command that needs more memory than its sandbox has, ${isolation}`, () => {
    let server: TestServer;
    before(async () => {
      server = await TestServer.start({ engineArgs: ['--isolation', isolation] });
      await importPython(server.engine);
    });
    after(() => server.destroy());

    const start = async (sandbox: string, memory = MEMORY_MIB): Promise<void> => {
      const config = { image: 'python', memory };
      const { error } = await server.call('sandbox.start', { sandbox, config });
      assert.equal(error, undefined, error?.message);
    };

    test('a caller of JSON-RPC gets the error, and what to do about it', async () => {
      await start('rpc');
      const command = { sandbox: 'rpc', command: 'python3', args: ['-c', PRINTING] };
      const answer = await server.call('sandbox.command.run', command);
      if (isWhole) {
        assertOutOfMemory(answer, 'sandbox.start');
        assert.partialDeepStrictEqual(answer.error?.data, { output: 'before\n', error: 'aside\n' });
      } else {
        const result = answer.result as { exit_code: number; output: string; error: string };
        assert.deepEqual([result.exit_code, result.output], [KILLED, 'before\n']);
        assert.match(result.error, /killed because the sandbox ran out of memory; .*larger config\.memory/);
      }
      await start('rpc-code');
      const code = { sandbox: 'rpc-code', language: 'python', code: GREED };
      const ran = await server.call('sandbox.repl.run', code);
      if (isWhole) assertOutOfMemory(ran, 'sandbox.start');
      else assert.match((ran.result as { error: string }).error, /because the sandbox ran out of memory/);
    });

    test('the error names the tool that a model should call, and that call helps', async (t) => {
      const { client } = await connectClient(t, server.url);
      const call = async (name: string, input: object) =>
        await client.callTool({ name, arguments: { sandbox: 'mcp', ...input } });
      const greed = { command: 'python3', args: ['-c', GREED] };
      await call('sandbox_start', { config: { image: 'python', memory: MEMORY_MIB } });
      const printing = { command: 'python3', args: ['-c', PRINTING] };
      const message = textOf(await call('sandbox_run_command', printing));
      assert.match(message, /out of memory/);
      assert.match(message, /before\n/);
      assert.match(message, /larger config\.memory/);
      assert.doesNotMatch(message, /sandbox\.start/);
      if (isWhole) assert.match(message, /Call sandbox_start with config\.image and a larger config\.memory/);
      // The second call gets the same error.
      if (isWhole)
        assert.match(textOf(await call('sandbox_run_command', greed)), /out of memory.*sandbox_start/);
      else await call('sandbox_stop', {});
      await call('sandbox_start', { config: { image: 'python', memory: 1024 } });
      assert.equal(textOf(await call('sandbox_run_command', greed)), `${400 * 1024 * 1024}\n`);
    });

    test('the SDK says it', async () => {
      const client = new Client({ apiUrl: server.url });
      await using sandbox = await Sandbox.create({ client, image: 'python', memoryMib: MEMORY_MIB });
      const ran = sandbox.exec('python3', ['-c', PRINTING]);
      if (!isWhole) {
        const result = await ran;
        return assert.deepEqual([result.reason, result.text()], ['oom', 'before\n']);
      }
      await assert.rejects(ran, (error) => {
        assert.ok(SvcError.is(error, 'sandbox_not_running'), String(error));
        const { reason, output, error: aside } = error.details ?? {};
        assert.deepEqual([reason, output, aside], ['oom', 'before\n', 'aside\n']);
        assert.match(error.message, /out of memory: .* raise resources\.memory_mib/);
        return true;
      });
    });

    test('the command line says it, and exits as a shell would', async () => {
      const words = ['run', '-m', `${MEMORY_MIB}M`, 'python', 'python3', '-c', GREED];
      const { code, stderr } = await svc(words, server.url);
      assert.equal(code, KILLED, stderr);
      assert.match(stderr, /memory/);
      assert.match(stderr, /-m/);
    });
  });
}

function assertOutOfMemory({ error }: RpcEnvelope, next: string): void {
  assert.ok(error !== undefined, 'it succeeded');
  assert.match(error.message, /out of memory: more than 96 MiB were needed/);
  assert.ok(error.message.includes(next), error.message);
  assert.match(error.message, /larger config\.memory$/);
  const { code, reason } = error.data as { code: string; reason: string };
  assert.deepEqual([error.code, code, reason], [-32_603, 'sandbox_not_running', 'oom']);
}

async function svc(words: readonly string[], url: string): Promise<{ code: unknown; stderr: string }> {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', SVC_API_URL: url };
  return await new Promise((settle) => {
    execFile(SVC, words, { env, timeout: 110_000 }, (error, _stdout, stderr) =>
      settle({ code: error === null ? 0 : (error.code ?? null), stderr }),
    );
  });
}
