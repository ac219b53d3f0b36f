import assert from 'node:assert/strict';
import { bothLanguages, success } from './test-both-languages.ts';

const inBoth = bothLanguages();

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
    const { status, output } = await run(code, 300);
    assert.deepEqual([status, output], ['timeout', 'before\n']);
    assert.deepEqual(await run(GET), success('42\n'));
  },
);

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

inBoth(
  'code that cannot be interrupted is killed, and what it printed is returned',
  {
    python: 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print("before")\nwhile True: pass',
    node: 'console.log("before"); setTimeout(() => { for (;;); }, 1); await new Promise(() => {})',
  },
  async (code, run) => {
    const { status, output, error } = await run(code, 200);
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

inBoth(
  'an interpreter that ends between two calls is told of in the next',
  {
    python: 'import os, threading; threading.Timer(0.05, lambda: os._exit(5)).start()',
    node: 'void setTimeout(() => process.exit(5), 50)',
  },
  async (code, run) => {
    assert.equal((await run(code)).status, 'success');
    const deadline = Date.now() + 10_000;
    let error = '';
    while (error === '' && Date.now() < deadline) ({ error } = await run('1'));
    assert.match(error, /exited with code 5; its state is lost/);
  },
);
