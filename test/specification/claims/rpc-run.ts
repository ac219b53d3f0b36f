import assert from 'node:assert/strict';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { below, call, failure, run, startedBox } from './rpc-call.ts';

export const commandClaims: readonly Claim[] = [
  claim(
    'sandbox.command.run.params.command',
    'A program, looked up on the path; no shell is involved',
    'a word with spaces stays one; a program that is not there is -32603 and named',
    async (ground) => {
      const sandbox = await startedBox(ground);
      const { output } = await call(ground, 'sandbox.command.run', {
        sandbox,
        command: 'echo',
        args: ['$HOME;  x'],
      });
      assert.equal(output, '$HOME;  x\n');
      const error = await failure(ground, 'sandbox.command.run', { sandbox, command: 'nothere' });
      assert.equal(error.code, -32_603);
      assert.match(error.message, /^command execution failed: 'nothere' not found/);
    },
  ),
  claim(
    'sandbox.command.run.params.args',
    'Its words; null is none',
    'what it prints',
    async (ground) => {
      const sandbox = await startedBox(ground);
      const params = { sandbox, command: 'echo' };
      assert.equal(
        (await call(ground, 'sandbox.command.run', { ...params, args: ['a', 'b'] })).output,
        'a b\n',
      );
      assert.deepEqual((await call(ground, 'sandbox.command.run', { ...params, args: null })).args, []);
    },
    { default: 'none' },
  ),
  claim(
    'sandbox.command.run.params.workdir',
    'Where it runs, instead of the working directory of the sandbox',
    'what `pwd` prints; a folder that is not there is -32603 and named',
    async (ground) => {
      const params = { sandbox: await startedBox(ground), command: 'pwd' };
      assert.equal(
        (await call(ground, 'sandbox.command.run', { ...params, workdir: '/tmp' })).output,
        '/tmp\n',
      );
      const error = await failure(ground, 'sandbox.command.run', { ...params, workdir: '/none' });
      assert.match(error.message, /'pwd' could not be started in \/none: .*; give another workdir$/);
    },
    { default: 'that of the sandbox' },
  ),
  claim(
    'sandbox.command.run.params.envs',
    'Variables over those of the sandbox',
    'what it prints',
    async (ground) => {
      const params = { sandbox: await startedBox(ground), command: 'sh', args: ['-c', 'echo "$GREETING"'] };
      const { output } = await call(ground, 'sandbox.command.run', { ...params, envs: ['GREETING=a = b'] });
      assert.equal(output, 'a = b\n');
    },
    { default: 'none' },
  ),
  claim(
    'sandbox.command.run.params.stdin',
    'What it reads from its input, which ends after it',
    'what `cat` prints, with input and without',
    async (ground) => {
      const params = { sandbox: await startedBox(ground), command: 'cat' };
      assert.equal((await call(ground, 'sandbox.command.run', { ...params, stdin: 'a\nb' })).output, 'a\nb');
      assert.equal((await call(ground, 'sandbox.command.run', params)).output, '');
    },
    { default: 'nothing' },
  ),
  claim(
    'sandbox.command.run.params.timeout',
    'Seconds after which it is killed',
    '-32603 `exec_timeout` with what it had printed',
    async (ground) => {
      const sandbox = await startedBox(ground);
      const params = { sandbox, command: 'sh', args: ['-c', 'echo so far; sleep 1000'], timeout: 1 };
      const error = await failure(ground, 'sandbox.command.run', params);
      assert.deepEqual(
        [error.code, error.data.code, error.data.output],
        [-32_603, 'exec_timeout', 'so far\n'],
      );
    },
    { default: '24 hours' },
  ),
  claim(
    'sandbox.command.run.result.command',
    'The command as it was sent',
    'the whole result of a command',
    async (ground) => {
      const result = await call(ground, 'sandbox.command.run', {
        sandbox: await startedBox(ground),
        command: 'sh',
        args: ['-c', 'echo out; echo err >&2; exit 3'],
      });
      const expected = {
        command: 'sh',
        args: ['-c', 'echo out; echo err >&2; exit 3'],
        exit_code: 3,
        success: false,
        output: 'out\n',
        error: 'err\n',
      };
      assert.deepEqual(result, expected);
    },
    { covers: below('sandbox.command.run.result', 'args', 'output', 'error') },
  ),
  claim(
    'sandbox.command.run.result.exit_code',
    'Its exit code; 128 and the number of the signal that ended it',
    'a program that exits and one that kills itself',
    async (ground) => {
      assert.equal((await run(ground, 'exit 7')).exit_code, 7);
      assert.equal((await run(ground, 'kill -9 $$')).exit_code, 137);
    },
  ),
  claim('sandbox.command.run.result.success', 'Whether the exit code is 0', 'both cases', async (ground) => {
    assert.deepEqual(
      [(await run(ground, 'true')).success, (await run(ground, 'false')).success],
      [true, false],
    );
  }),
  claimOnce(
    'sandbox.command.run.result.truncated',
    'True when output was cut at 10 MiB, absent otherwise',
    'a command that prints 11 MiB',
    async (ground) => {
      const { truncated, output } = await run(
        ground,
        'dd if=/dev/zero bs=1M count=11 2> /dev/null | tr "\\0" x',
      );
      assert.equal(truncated, true);
      assert.match(output.slice(-60), /output cut here: it exceeds 10 MiB/);
      assert.ok(!('truncated' in (await run(ground, 'echo short'))));
    },
  ),
];

async function codeBox(ground: Ground, image: string): Promise<string> {
  return await ground.shared(`code-${image}`, async () => {
    const sandbox = ground.fresh(image);
    await call(ground, 'sandbox.start', { sandbox, config: { image, memory: 256 } });
    return sandbox;
  });
}

async function repl(ground: Ground, code: string, more: object = {}): Promise<Json> {
  return await call(ground, 'sandbox.repl.run', {
    sandbox: await codeBox(ground, 'python'),
    language: 'python',
    code,
    ...more,
  });
}

export const codeClaims: readonly Claim[] = [
  claimOnce(
    'sandbox.repl.run.params.language',
    'The interpreter: python; node, nodejs or javascript',
    'each of the words runs code, and comes back as it was sent; another is an error',
    async (ground) => {
      const sandbox = await codeBox(ground, 'node');
      for (const language of ['node', 'nodejs', 'JavaScript']) {
        const result = await call(ground, 'sandbox.repl.run', { sandbox, language, code: '6 * 7' });
        assert.deepEqual([result.output, result.language], ['42\n', language]);
      }
      assert.equal((await repl(ground, '6 * 7', { language: 'Python' })).output, '42\n');
      const error = await failure(ground, 'sandbox.repl.run', { sandbox, language: 'cobol', code: '' });
      assert.deepEqual([error.code, error.data.field], [-32_602, 'language']);
    },
    { covers: ['sandbox.repl.run.result.language'] },
  ),
  claim(
    'sandbox.repl.run.params.code',
    'Runs as one unit; what it defines is there for the next call',
    'a variable of one call is read by the next',
    async (ground) => {
      await repl(ground, 'kept = 41\n\nif kept:\n\n    kept += 1');
      assert.equal((await repl(ground, 'kept')).output, '42\n');
    },
  ),
  claim(
    'sandbox.repl.run.params.timeout',
    'Seconds after which the code is interrupted',
    'the status says so, with what was printed, and what was defined before is kept',
    async (ground) => {
      await repl(ground, 'before = 1');
      const result = await repl(ground, 'import time\nprint("so far", flush=True)\ntime.sleep(1000)', {
        timeout: 1,
      });
      assert.deepEqual([result.status, result.output], ['timeout', 'so far\n']);
      assert.equal((await repl(ground, 'before')).output, '1\n');
    },
    { default: '24 hours', covers: ['sandbox.repl.run.result.status=timeout'] },
  ),
  claim(
    'sandbox.repl.run.result.status',
    'How it ended',
    'code that succeeds and code that raises',
    async (ground) => {
      assert.deepEqual(
        [(await repl(ground, '1')).status, (await repl(ground, '1/0')).status],
        ['success', 'error'],
      );
    },
    { covers: ['sandbox.repl.run.result.status=success', 'sandbox.repl.run.result.status=error'] },
  ),
  claim(
    'sandbox.repl.run.result.output',
    'What was printed, and the value of a last expression',
    'both together',
    async (ground) => {
      assert.equal((await repl(ground, 'print("said")\n6 * 7')).output, 'said\n42\n');
    },
  ),
  claim(
    'sandbox.repl.run.result.error',
    'What was written to stderr, and the traceback',
    'both',
    async (ground) => {
      assert.equal((await repl(ground, 'import sys; print("oops", file=sys.stderr)')).error, 'oops\n');
      assert.match((await repl(ground, '1/0')).error, /ZeroDivisionError/);
    },
  ),
  claimOnce(
    'sandbox.repl.run.result.has_error',
    'Whether it raised',
    'code that succeeds and code that raises',
    async (ground) => {
      assert.deepEqual(
        [(await repl(ground, '1')).has_error, (await repl(ground, '1/0')).has_error],
        [false, true],
      );
    },
  ),
  claimOnce(
    'sandbox.repl.run.result.truncated',
    'True when output was cut, absent otherwise',
    'code that prints 11 MiB',
    async (ground) => {
      assert.equal((await repl(ground, 'print("x" * (11 << 20))')).truncated, true);
      assert.ok(!('truncated' in (await repl(ground, '1'))));
    },
  ),
  claimOnce(
    'sandbox.repl.run.params.results',
    'Whether the answer has what the code showed, in all its forms',
    'a value with HTML, with and without',
    async (ground) => {
      const code =
        'class B:\n    def _repr_html_(self): return "<b>x</b>"\n    def __repr__(self): return "x"\nB()';
      const { results, output } = await repl(ground, code, { results: true });
      assert.equal(output, 'x\n');
      assert.deepEqual(results, [
        {
          data: { 'text/plain': 'x', 'text/html': '<b>x</b>' },
          metadata: {},
          is_main_result: true,
          truncated: false,
          left_out: [],
        },
      ]);
      assert.ok(!('results' in (await repl(ground, code))));
    },
    {
      default: 'false',
      covers: ['data', 'metadata', 'is_main_result', 'truncated'].map(
        (field) => `sandbox.repl.run.result.results.${field}`,
      ),
    },
  ),
  claimOnce(
    'sandbox.repl.run.result.results.left_out.reason',
    'Why a form of a result is missing',
    'forms that are too large, raise, or are not of their type, and more of them than fit',
    async (ground) => {
      const code = [
        'class Odd:',
        '    def _repr_html_(self): return "x" * (5 << 20)',
        '    def _repr_markdown_(self): raise ValueError("no")',
        '    def _repr_latex_(self): return 5',
        'display(Odd())',
        'for _ in range(3): display({"text/html": "x" * (3 << 20)}, raw=True)',
      ].join('\n');
      const { results } = await repl(ground, code, { results: true });
      const missing = (results as Json[]).flatMap(({ left_out: leftOut }) => leftOut as Json[]);
      assert.deepEqual(
        missing.map(({ type, reason }) => [type, reason]),
        [
          ['text/markdown', 'failed'],
          ['text/latex', 'invalid'],
          ['text/html', 'too_large'],
          ['text/html', 'too_many'],
        ],
      );
      assert.deepEqual(
        missing.map(({ bytes }) => bytes),
        [null, null, (5 << 20) + 2, (3 << 20) + 2],
      );
      assert.match(missing[2].message, /write it to a file/);
    },
    {
      covers: [
        ...['type', 'bytes', 'message'].map((field) => `sandbox.repl.run.result.results.left_out.${field}`),
        ...['too_large', 'too_many', 'failed', 'invalid'].map(
          (reason) => `sandbox.repl.run.result.results.left_out.reason=${reason}`,
        ),
      ],
    },
  ),
];
