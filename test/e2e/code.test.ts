import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { ChannelClient, PlatformError, type SandboxSpec } from '@svc/contract';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { createCodeRunner } from '../../packages/server/src/code/code-runner.ts';
import type { CodeResult } from '../../packages/server/src/code/slot-request.ts';
import { CLASSES, startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';
import { importNode, importPython } from '../engine/interpreter-images.ts';

type Language = 'python' | 'node';

const LANGUAGES: readonly Language[] = ['python', 'node'];
const SET = { python: 'kept = 41', node: 'const kept = 41' };
const GET = 'kept + 1';
const FORTY_TWO = { status: 'success', output: '42\n', error: '', truncated: false };

let engine: TestEngine;
let runner: ReturnType<typeof createCodeRunner>;

before(async () => {
  engine = await TestEngine.start();
  await importPython(engine);
  await importNode(engine);
  runner = createCodeRunner({
    openChannel: async (id, signal) =>
      await ChannelClient.connect(socketTransport(await engine.client.openChannel(id, signal)), { signal }),
    logger: { debug: () => undefined },
  });
});
after(async () => {
  runner.close();
  await engine.destroy();
});

async function run(
  sandbox: TestSandbox,
  language: Language,
  code: string,
  timeoutMs = 30_000,
): Promise<CodeResult> {
  const { signal } = new AbortController();
  return await runner.run({ sandboxId: sandbox.id, language, code, timeoutMs }, signal);
}

for (const isolation of CLASSES) {
  describe(`code in sandboxes of class ${isolation}`, { concurrency: false }, () => {
    async function withSandbox(
      language: Language,
      more: Partial<SandboxSpec>,
      use: (sandbox: TestSandbox) => Promise<void>,
    ): Promise<void> {
      const image = { type: 'oci', reference: language } as const;
      const sandbox = await startSandbox(engine, isolation, { image, ...more });
      try {
        await use(sandbox);
      } finally {
        runner.forget(sandbox.id);
        await sandbox.remove();
      }
    }

    for (const language of LANGUAGES) {
      test(`state stays between calls and survives a timeout (${language})`, async () => {
        await withSandbox(language, {}, async (sandbox) => {
          await run(sandbox, language, SET[language]);
          assert.deepEqual(await run(sandbox, language, GET), FORTY_TWO);
          const loop = language === 'python' ? 'while True: pass' : 'for (;;);';
          const { status, error } = await run(sandbox, language, loop, 500);
          assert.equal(status, 'timeout');
          assert.match(error, /the state is kept/);
          assert.deepEqual(await run(sandbox, language, GET), FORTY_TWO);
        });
      });

      test(`a killed interpreter is reported, loses no output and is replaced (${language})`, async () => {
        await withSandbox(language, {}, async (sandbox) => {
          const code =
            language === 'python'
              ? 'import os; print("x" * 70_000); os.kill(os.getpid(), 9)'
              : 'console.log("x".repeat(70_000)); process.kill(process.pid, 9)';
          const { output, error } = await run(sandbox, language, code);
          assert.equal(output.length, 70_001);
          assert.match(error, /killed by SIGKILL; its state is lost/);
          assert.deepEqual(await run(sandbox, language, '40 + 2'), FORTY_TWO);
        });
      });

      test(`10 MiB of output are complete (${language})`, async () => {
        await withSandbox(language, {}, async (sandbox) => {
          const code =
            language === 'python'
              ? 'print("z" * ((10 << 20) - 1))'
              : 'console.log("z".repeat((10 << 20) - 1))';
          const { output, truncated } = await run(sandbox, language, code);
          assert.deepEqual([output.length, truncated], [10 << 20, false]);
        });
      });

      test(`code runs without rights, without a network and with nothing to write to (${language})`, async () => {
        const more: Partial<SandboxSpec> = {
          runtime: { user: '65534:65534', workdir: '/proc' },
          network: { enabled: false },
          security_profile: 'restricted',
        };
        await withSandbox(language, more, async (sandbox) => {
          const code =
            language === 'python'
              ? 'import os\ntry: open("file", "w")\nexcept OSError: print(os.getuid(), os.getcwd())'
              : 'try { require("fs").writeFileSync("file", "") } catch { console.log(process.getuid(), process.cwd()) }';
          assert.deepEqual(await run(sandbox, language, code), { ...FORTY_TWO, output: '65534 /proc\n' });
        });
      });
    }

    test('a language that the image lacks is named by its program', async () => {
      await withSandbox('node', {}, async (sandbox) => {
        await assert.rejects(run(sandbox, 'python', '1'), (error) => {
          assert.ok(PlatformError.is(error, 'exec_failed'));
          assert.match(error.message, /'python3' is not in the sandbox/);
          return true;
        });
      });
    });
  });
}

test('an interpreter that takes more memory than there is was killed for it', async () => {
  const image = { type: 'oci', reference: 'python' } as const;
  const sandbox = await startSandbox(engine, 'container', { image, resources: { memory_mib: 64 } });
  try {
    const { status, error } = await run(sandbox, 'python', 'print("before"); x = bytearray(200 << 20)');
    assert.equal(status, 'error');
    assert.match(error, /killed because the sandbox ran out of memory; its state is lost/);
    assert.deepEqual(await run(sandbox, 'python', '40 + 2'), FORTY_TWO);
  } finally {
    runner.forget(sandbox.id);
    await sandbox.remove();
  }
});

test('kill -9 of the engine costs an interpreter neither its state nor its output', async () => {
  const image = { type: 'oci', reference: 'python' } as const;
  const sandbox = await startSandbox(engine, 'container', { image });
  try {
    await run(sandbox, 'python', SET.python);
    await engine.restart();
    const { status, error } = await run(sandbox, 'python', 'again = 1');
    assert.deepEqual([status, error], ['success', '']);
    // The pattern does not match the process that looks for it.
    const find = 'for f in /proc/[0-9]*/cmdline; do grep -q "svc drive[r]" $f && echo $f; done; true';
    const isAlone = async () => (await sandbox.sh(find)).stdout.trim().split('\n').length === 1;
    await waitUntil(isAlone, { what: 'there is one interpreter' });
  } finally {
    runner.forget(sandbox.id);
    await sandbox.remove();
  }
});
