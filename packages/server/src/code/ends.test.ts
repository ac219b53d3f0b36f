import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withEnoughTime } from '../testing/enough-time.ts';
import { bothLanguages, success } from '../testing/both-languages.ts';

const inBoth = bothLanguages();
/** For tests in which code is killed. */
const inBothSoon = bothLanguages({ killMs: 1000 });

/** Assigns and reads a variable in both languages. */
const SET = { python: 'kept = 41', node: 'const kept = 41' };
const GET = 'kept + 1';

inBoth(
  'an endless loop is interrupted and the state is kept',
  { python: 'while True: pass', node: 'while (true);' },
  async (code, run, language) => {
    await run(SET[language]);
    const { status, error } = await run(code, 300);
    assert.equal(status, 'timeout');
    assert.match(error, /Interrupted after 0.3 s; the state is kept/);
    assert.doesNotMatch(error, /svc/);
    assert.deepEqual(await run(GET), success('42\n'));
  },
);

inBoth(
  'a wait is interrupted, and what was printed before it is returned',
  {
    python: 'import time; print("before"); time.sleep(60)',
    node: 'console.log("before"); await new Promise(() => {})',
  },
  async (code, run, language) => {
    await run(SET[language]);
    const { outcome } = await withEnoughTime(
      async (seconds) => await run(code, seconds * 1000),
      ({ output }) => output !== '',
    );
    assert.deepEqual([outcome.status, outcome.output], ['timeout', 'before\n']);
    assert.deepEqual(await run(GET), success('42\n'));
  },
);

const COLLECT = {
  python: 'import gc; _ = gc.collect()',
  node: `require('v8').setFlagsFromString('--expose-gc'); void require('vm').runInNewContext('gc')()`,
};

for (const [what, node] of Object.entries({
  'a wait for ever': 'await new Promise(() => {})',
  'a loop after a wait': 'await 1; while (true);',
})) {
  inBoth(
    `the state outlives ${what} also when what was interrupted is garbage`,
    { python: 'asyncio.run(asyncio.sleep(60))', node },
    async (code, run, language) => {
      await run(SET[language]);
      // Without a limit: a package whose import was interrupted cannot be imported again, which is Python's own affair.
      if (language === 'python') await run('import asyncio');
      assert.equal((await run(code, 300)).status, 'timeout');
      assert.deepEqual(await run(COLLECT[language]), success(''));
      assert.deepEqual(await run(GET), success('42\n'));
      // The interpreter can be interrupted again.
      const again = await run(code, 300);
      assert.equal(again.status, 'timeout', JSON.stringify(again));
      assert.deepEqual(await run(GET), success('42\n'));
    },
  );
}

inBoth(
  'a child that runs too long is interrupted with its parent',
  {
    python: 'import subprocess; subprocess.run(["sleep", "60"])',
    node: 'require("child_process").spawnSync("sleep", ["60"], { stdio: "inherit" }); for (;;);',
  },
  async (code, run, language) => {
    await run(SET[language]);
    assert.equal((await run(code, 300)).status, 'timeout');
    assert.deepEqual(await run(GET), success('42\n'));
  },
);

inBothSoon(
  'code that cannot be interrupted is killed, and what it printed is returned',
  {
    python: 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print("before")\nwhile True: pass',
    node: 'setTimeout(() => { console.log("before"); for (;;); }, 1); await new Promise(() => {})',
  },
  async (code, run) => {
    const { outcome } = await withEnoughTime(
      async (seconds) => await run(code, seconds * 1000),
      (result) => result.output !== '',
    );
    const { status, output, error } = outcome;
    assert.deepEqual([status, output], ['timeout', 'before\n']);
    assert.match(
      error,
      /did not react to the interruption, so the interpreter was killed; its state is lost/,
    );
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'exit ends the call and nothing else',
  { python: 'print("last"); exit()', node: 'console.log("last"); process.exit()' },
  async (code, run, language) => {
    await run(SET[language]);
    const { status, output, error } = await run(code);
    assert.deepEqual([status, output], ['success', 'last\n']);
    if (language === 'node') assert.match(error, /exited with code 0; its state is lost/);
    const next = await run(language === 'python' ? GET : 'typeof kept');
    assert.deepEqual(next, success(language === 'python' ? '42\n' : "'undefined'\n"));
  },
);

inBoth(
  'exit with a code is an error',
  { python: 'import sys; sys.exit(3)', node: 'process.exit(3)' },
  async (code, run, language) => {
    const { status, error } = await run(code);
    assert.equal(status, 'error');
    assert.match(
      error,
      language === 'python' ? /^SystemExit: 3\n$/ : /exited with code 3; its state is lost/,
    );
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'a sudden end loses nothing that was printed, and says so',
  {
    python: 'import os; print("x" * 100_000); os._exit(4)',
    node: 'console.log("x".repeat(100_000)); process.reallyExit(4)',
  },
  async (code, run) => {
    const { status, output, error } = await run(code);
    assert.deepEqual([status, output.length], ['error', 100_001]);
    assert.match(error, /exited with code 4; its state is lost/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'an interpreter that is killed is named, and a new one takes its place',
  { python: 'import os; os.kill(os.getpid(), 11)', node: 'process.kill(process.pid, "SIGKILL")' },
  async (code, run, language) => {
    const { status, error } = await run(code);
    assert.equal(status, 'error');
    assert.match(
      error,
      language === 'python' ? /killed by SIGSEGV; its state is lost/ : /killed by SIGKILL; its state is lost/,
    );
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

/** Ends when the file is there, which the test makes after the call has ended. */
const END_LATER = {
  python: `import os, threading, time
def wait():
    while not os.path.exists(FILE): time.sleep(0.01)
    os._exit(5)
threading.Thread(target=wait).start()`,
  node: 'void setInterval(() => require("fs").existsSync(FILE) && process.exit(5), 10)',
};

inBoth(
  'an interpreter that ends between two calls is reported in the next',
  END_LATER,
  async (code, run, language) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-ends-'));
    try {
      const file = join(folder, 'now');
      const assignment = language === 'python' ? 'FILE =' : 'var FILE =';
      assert.deepEqual(await run(`${assignment} ${JSON.stringify(file)}\n${code}`), success(''));
      await writeFile(file, '');
      const deadline = performance.now() + 60_000;
      let error = '';
      while (error === '' && performance.now() < deadline) ({ error } = await run('1'));
      assert.match(error, /exited with code 5; its state is lost/);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
