import assert from 'node:assert/strict';
import { bothLanguages, success } from '../testing/both-languages.ts';

const inBoth = bothLanguages();

inBoth(
  'a last expression is shown',
  { python: 'a = "x"\n\na * 3', node: 'const a = "x"\n\na.repeat(3)' },
  async (code, run) => {
    assert.deepEqual(await run(code), success("'xxx'\n"));
  },
);

inBoth('a last value of nothing is not shown', { python: 'None', node: 'undefined' }, async (code, run) => {
  assert.deepEqual(await run(code), success(''));
  assert.deepEqual(await run(''), success(''));
});

inBoth(
  'declarations stay and may be declared again',
  {
    python: 'import math\ndef f(): return 1\nclass A:\n    b = 2\nc = 3',
    node: 'const math = Math; function f() { return 1 }; class A { static b = 2 }; let c = 3',
  },
  async (code, run) => {
    await run(code);
    assert.deepEqual(await run(code), success(''));
    assert.deepEqual(await run('f() + A.b + c + math.floor(1.5)'), success('7\n'));
  },
);

inBoth(
  'code with blank lines inside blocks is one unit',
  {
    python:
      'def f():\n    a = 1\n\n    b = 2\n\n\n    return a + b\nfor i in range(2):\n    print(i)\n\n    print(f())\n',
    node: 'function f() {\n  const a = 1;\n\n  return a + 2;\n}\nfor (let i = 0; i < 2; i++) {\n  console.log(i);\n\n  console.log(f());\n}\n',
  },
  async (code, run) => assert.equal((await run(code)).output, '0\n3\n1\n3\n'),
);

inBoth(
  'stdout and stderr are distinguished',
  {
    python: 'import sys; print("out"); print("err", file=sys.stderr)',
    node: 'console.log("out"); console.error("err")',
  },
  async (code, run) => {
    assert.deepEqual(await run(code), { ...success('out\n'), error: 'err\n' });
  },
);

inBoth(
  'a traceback shows the lines of the user and no others',
  {
    python: 'def f():\n    raise ValueError("no")\n\nf()',
    node: 'function f() {\n  throw new RangeError("no");\n}\n\nf();',
  },
  async (code, run, language) => {
    const { status, error } = await run(code);
    assert.equal(status, 'error');
    assert.match(error, language === 'python' ? /line 4, in <module>\n {4}f\(\)\n/ : /at f \(cell-1:2:9\)\n/);
    assert.match(error, /(ValueError|RangeError): no/);
    assert.doesNotMatch(error, /svc|eval|inspector|node:/);
  },
);

inBoth(
  'an open bracket is an error at once',
  { python: 'print((1', node: 'console.log((1' },
  async (code, run) => {
    const { status, error } = await run(code);
    assert.equal(status, 'error');
    assert.match(error, /SyntaxError/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'nothing of a unit with a syntax error runs',
  { python: 'print("ran")\nfoo(', node: 'console.log("ran");\nfoo(' },
  async (code, run) => assert.equal((await run(code)).output, ''),
);

inBoth(
  'reading stdin finds its end at once',
  { python: 'import sys; sys.stdin.read()', node: 'require("fs").readFileSync(0, "utf8")' },
  async (code, run, language) => {
    assert.deepEqual(await run(code), success("''\n"));
    if (language === 'python') assert.match((await run('input()')).error, /EOFError/);
    else
      assert.deepEqual(await run('let n = 0; for await (const _ of process.stdin) n++; n'), success('0\n'));
  },
);

inBoth(
  'a child that reads stdin finds its end at once',
  {
    python: 'import subprocess; subprocess.run(["cat"]).returncode',
    node: 'require("child_process").spawnSync("cat", { stdio: "inherit" }).status',
  },
  async (code, run) => assert.deepEqual(await run(code), success('0\n')),
);

inBoth(
  'modules are loaded, and text that looks like loading one is left alone',
  {
    python: 'import importlib; importlib.import_module("json").dumps("import(1)")',
    node: 'const { basename } = await import("node:path"); /* import("z") */ `import("x") ${basename((await import("path")).join("a", "b"))}`',
  },
  async (code, run, language) => {
    assert.deepEqual(
      await run(code),
      success(language === 'python' ? `'"import(1)"'\n` : `'import("x") b'\n`),
    );
  },
);

inBoth(
  'import statements declare their names for this call and later ones',
  {
    python: 'import os.path as all\nfrom posixpath import basename, join as j\nbasename("/a/b")',
    node: `import path, { basename } from 'path';\nimport * as all from 'node:path'\nimport { join as j } from 'path'\nbasename('/a/b')`,
  },
  async (code, run) => {
    assert.deepEqual(await run(code), success("'b'\n"));
    assert.deepEqual(await run('all.basename(j("a", "c"))'), success("'c'\n"));
    // And may be declared again.
    assert.deepEqual(await run(code), success("'b'\n"));
  },
);

inBoth(
  'work that a last expression started without waiting for it belongs to the call',
  {
    python:
      'import asyncio\nasync def main():\n    await asyncio.sleep(0.05)\n    print("done")\nasyncio.run(main())',
    node: 'async function main() { await new Promise((r) => setTimeout(r, 50)); console.log("done") }\nmain()',
  },
  async (code, run) => assert.deepEqual(await run(code), success('done\n')),
);

inBoth(
  'an uncaught error in the background fails the call that waits for it',
  {
    python: 'import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()',
    node: 'setTimeout(() => { throw new Error("late") }, 5); await new Promise((r) => setTimeout(r, 50))',
  },
  async (code, run) => {
    assert.match((await run(code)).error, /ZeroDivisionError|Error: late/);
    assert.deepEqual(await run('1'), success('1\n'));
  },
);

inBoth(
  'code of a megabyte is one unit',
  { python: `text = '${'t'.repeat(1 << 20)}'`, node: `const text = '${'t'.repeat(1 << 20)}'` },
  async (code, run, language) => {
    assert.deepEqual(await run(code), success(''));
    assert.deepEqual(await run(language === 'python' ? 'len(text)' : 'text.length'), success('1048576\n'));
  },
);

inBoth(
  'the environment of one unit holds for it alone, also when it fails',
  {
    python: 'import os; print(os.environ.get("WORD"), os.environ.get("HOME") == "/x"); raise ValueError()',
    node: 'console.log(process.env.WORD, process.env.HOME === "/x"); throw new Error()',
  },
  async (code, run, language) => {
    const { output } = await run(code, undefined, { env: { WORD: 'größer', HOME: '/x' } });
    assert.match(output, /^größer (True|true)\n/);
    const after = await run(code);
    assert.match(after.output, language === 'python' ? /^None False\n/ : /^undefined false\n/);
  },
);

inBoth(
  'a last value of a quiet unit is not printed, and everything else is',
  { python: 'print("said")\n6 * 7', node: 'console.log("said"); 6 * 7' },
  async (code, run) => {
    assert.deepEqual(await run(code, undefined, { quiet: true }), success('said\n'));
    assert.deepEqual(await run(code), success('said\n42\n'));
  },
);
