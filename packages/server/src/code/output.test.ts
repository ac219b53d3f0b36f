import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withEnoughTime } from '../testing/enough-time.ts';
import { MAX_OUTPUT_BYTES } from './marked-output.ts';
import { bothLanguages, success } from '../testing/both-languages.ts';

const inBoth = bothLanguages();

inBoth(
  'output beyond 10 MiB is cut with a mark',
  {
    python: 'print("y" * (11 << 20)); print("end")',
    node: 'console.log("y".repeat(11 << 20)); console.log("end")',
  },
  async (code, run) => {
    const { status, output, truncated } = await run(code);
    assert.deepEqual([status, truncated], ['success', true]);
    assert.equal(output.slice(0, MAX_OUTPUT_BYTES), 'y'.repeat(MAX_OUTPUT_BYTES));
    assert.equal(output.slice(MAX_OUTPUT_BYTES), '\n[output cut here: it exceeds 10 MiB]\n');
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  '10 MiB of output are complete',
  { python: 'print("z" * ((10 << 20) - 1))', node: 'console.log("z".repeat((10 << 20) - 1))' },
  async (code, run) => {
    assert.deepEqual(await run(code), success(`${'z'.repeat((10 << 20) - 1)}\n`));
  },
);

inBoth(
  'a flood is ended by the timeout',
  { python: 'while True: print("f" * 1000)', node: 'for (;;) console.log("f".repeat(1000))' },
  async (code, run) => {
    const { outcome } = await withEnoughTime(
      async (seconds) => await run(code, seconds * 1000),
      ({ output }) => output.length > 10_000,
    );
    assert.equal(outcome.status, 'timeout');
    assert.ok(outcome.output.length > 10_000);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'binary output has its invalid bytes replaced',
  {
    python: 'import sys; sys.stdout.buffer.write(b"a\\xff\\xfeb\\x00\\n"); None',
    node: 'process.stdout.write(Buffer.from([97, 255, 254, 98, 0, 10])); undefined',
  },
  async (code, run) => assert.deepEqual(await run(code), success('a\uFFFD\uFFFDb\0\n')),
);

inBoth(
  'deep recursion is an error of the code',
  { python: 'def r(): return r() + 1\nr()', node: 'function r() { return r() + 1 }\nr()' },
  async (code, run, language) => {
    await run(language === 'python' ? 'kept = 42' : 'const kept = 42');
    const { status, error } = await run(code);
    assert.equal(status, 'error');
    assert.match(error, /RecursionError|Maximum call stack size exceeded/);
    assert.deepEqual(await run('kept'), success('42\n'));
  },
);

inBoth(
  'a stack that overflows for real ends the interpreter only',
  {
    python: 'import sys, ctypes; ctypes.string_at(0)',
    node: 'process.abort()',
  },
  async (code, run) => {
    assert.match((await run(code)).error, /killed by SIG(SEGV|ABRT); its state is lost/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'everything that threads and children print before the end is there',
  {
    python:
      'import subprocess, threading, os\nt = [threading.Thread(target=print, args=("thread",)) for _ in range(20)]\n[x.start() for x in t]; [x.join() for x in t]\nsubprocess.run(["sh", "-c", "seq 20000; echo error >&2"])\nos.write(1, b"raw\\n"); None',
    node: 'const { execFileSync } = require("child_process");\nfor (let i = 0; i < 20; i++) console.log("thread");\nexecFileSync("sh", ["-c", "seq 20000; echo error >&2"], { stdio: "inherit" });\nrequire("fs").writeSync(1, "raw\\n"); undefined',
  },
  async (code, run) => {
    const { output, error } = await run(code);
    assert.equal(output.match(/thread\n/g)?.length, 20);
    assert.ok(output.endsWith('\n19999\n20000\nraw\n'), output.slice(-40));
    assert.equal(error, 'error\n');
  },
);

/** Prints once the file is there, which the test makes after the call has ended. */
const LATE = 'until [ -e "$0" ]; do sleep 0.05; done; echo late';

inBoth(
  'what is printed after the end of a call comes with the next one',
  {
    python: `import subprocess; p = subprocess.Popen(["sh", "-c", '${LATE}', FILE])`,
    node: `const p = require("child_process").spawn("sh", ["-c", '${LATE}', FILE], { stdio: "inherit" })`,
  },
  async (code, run, language) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-output-'));
    try {
      const file = join(folder, 'now');
      assert.equal((await run(code.replace('FILE', JSON.stringify(file)))).output, '');
      await writeFile(file, '');
      const wait = language === 'python' ? 'p.wait()' : 'await new Promise((r) => p.once("exit", r)) ?? 0';
      assert.deepEqual(await run(wait), success('late\n0\n'));
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

inBoth(
  'a child that floods in the background does not hold up later calls',
  {
    python: 'import subprocess; p = subprocess.Popen(["yes"])',
    node: 'const p = require("child_process").spawn("yes", { stdio: "inherit" })',
  },
  async (code, run, language) => {
    await run(code);
    const name = language === 'python' ? 'kept' : 'var kept';
    assert.equal((await run(`${name} = "still" + "here"`)).status, 'success');
    // Its flood may have filled the output limit of the call before; afterwards there is room again.
    const wait = language === 'python' ? 'p.wait()' : 'await new Promise((r) => p.once("exit", r))';
    assert.equal((await run(`p.kill(); ${wait}`)).status, 'success');
    assert.deepEqual(await run('kept'), success("'stillhere'\n"));
  },
);

inBoth(
  'code that closes stdout does not silence the next call',
  { python: 'import os; os.close(1); os.close(2)', node: 'require("fs").closeSync(1)' },
  async (code, run, language) => {
    const { status, error } = await run(code);
    assert.equal(status, 'success');
    assert.match(error, language === 'python' ? /^$/ : /closed stdout for good.*its state is lost/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'a file that takes the place of stdout gets nothing of ours',
  {
    python:
      'import os\nos.close(1)\nfd = os.open("/dev/null", os.O_WRONLY)\nos.dup2(os.open("/dev/full", os.O_WRONLY), 2)',
    node: 'const fs = require("fs"); fs.closeSync(1); fs.openSync("/dev/full", "w")',
  },
  async (code, run) => {
    await run(code);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'code that replaces or ends the stream objects does not silence the next call',
  {
    python:
      'import io, sys; sys.stdout.close(); sys.stdout = io.StringIO(); sys.stderr = None; sys.stdin.close()',
    node: 'process.stdout.end(); process.stderr.destroy(); process.stdout = null; undefined',
  },
  async (code, run, language) => {
    assert.equal((await run(code)).status, 'success');
    const print =
      language === 'python'
        ? 'import sys; print("o"); print("e", file=sys.stderr)'
        : 'console.log("o"); console.error("e")';
    assert.deepEqual(await run(print), { ...success('o\n'), error: 'e\n' });
  },
);

inBoth(
  'code that replaces builtins breaks itself only',
  {
    python:
      'import builtins\nfor name in ("len", "compile", "isinstance", "exec", "print", "open", "str", "bytes", "type", "min"): setattr(builtins, name, None)\n1 / 0',
    node: 'for (const name of ["Promise", "JSON", "Object", "Symbol", "Buffer", "setImmediate", "Array", "console"]) globalThis[name] = null; Array.prototype.push = null',
  },
  async (code, run, language) => {
    const { error } = await run(code);
    if (language === 'python') assert.match(error, /ZeroDivisionError/);
    else assert.match(error, /null/);
    assert.deepEqual(await run('40 + 2'), success('42\n'));
    assert.equal((await run('nothing')).status, 'error');
  },
);

inBoth(
  'output that looks like an end, or like anything else of ours, is output',
  {
    python: 'import os; os.write(1, b"s\\x00" + bytes(range(256)) * 10); print(12345)',
    node: 'process.stdout.write(Buffer.concat([Buffer.from("s\\0"), Buffer.from(Array.from({ length: 2560 }, (_, i) => i % 256))])); console.log(12345)',
  },
  async (code, run) => {
    const { output } = await run(code);
    assert.ok(output.startsWith('s\0'));
    assert.ok(output.endsWith('12345\n'));
  },
);

inBoth(
  'descriptors of ours are not inherited by children',
  {
    python: 'import subprocess; subprocess.run(["sh", "-c", "ls /proc/self/fd"], close_fds=False)',
    node: 'require("child_process").spawnSync("sh", ["-c", "ls /proc/self/fd"], { stdio: "inherit" })',
  },
  async (code, run) => {
    // ls itself opens the folder as descriptor 3.
    assert.equal((await run(code)).output.replace(/CompletedProcess[^\n]*\n|\{[^]*\}\n/, ''), '0\n1\n2\n3\n');
  },
);

inBoth(
  'code that closes every descriptor it can count does not hang',
  {
    python: 'import os; os.closerange(3, 65536)',
    node: 'for (let fd = 3; fd < 1000; fd++) { try { require("fs").closeSync(fd) } catch {} }',
  },
  async (code, run) => {
    const { error } = await run(code, 3000);
    assert.match(error, /its state is lost/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'a copy of the process that the code makes does not answer in its place',
  {
    python: 'import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint("parent" if pid else "child")',
    node: 'require("child_process").execFileSync(process.execPath, ["-p", "\'child\'"], { stdio: "inherit" }); console.log("parent")',
  },
  async (code, run) => {
    assert.deepEqual(await run(code), success('child\nparent\n'));
    assert.deepEqual(await run('1'), success('1\n'));
  },
);
