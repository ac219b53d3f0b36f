import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const { reachImports } = createRequire(import.meta.url)('./node-imports.cjs') as {
  reachImports: (code: string) => string;
};

test('import statements of every form become declarations of the same names', () => {
  for (const [code, reached] of [
    [`import 'm'`, `void (await __svc_import__('m'));`],
    [`import a from "m";`, `const { default: a } = await __svc_import__("m");`],
    [`import {a, b as c} from 'm'`, `const { a, b: c } = await __svc_import__('m');`],
    [`import * as all from 'm'`, `const all = await __svc_import__('m');`],
    [`import a,{b}from'm'`, `const { default: a, b } = await __svc_import__('m');`],
    [`import a, * as all from 'm'`, `const all = await __svc_import__('m'), { default: a } = all;`],
    [
      `import a from './a.json' with { type: 'json' }`,
      `const { default: a } = await __svc_import__('./a.json', { with: { type: 'json' } });`,
    ],
    [
      `const n = 1; import a from 'm'; a + n`,
      `const n = 1; const { default: a } = await __svc_import__('m'); a + n`,
    ],
  ] as const) {
    assert.equal(reachImports(code), reached);
  }
});

test('code behind an import statement keeps its line number', () => {
  const code = `import {\n  a, // the first\n  b,\n} from 'm';\nimport c from 'm'\nthrow a`;
  const reached = reachImports(code);
  assert.match(reached, /const \{ a, b, \} =/);
  assert.equal(reached.split('\n').indexOf('throw a'), 5, reached);
});

test('text that only looks like an import, and code that is wrong, is left alone', () => {
  for (const code of [
    `// import a from 'm'\nconst text = "import b from 'm'"`,
    'const text = `\nimport a from "m"\n`',
    `import.meta.url`,
    `let = ; import a from 'm'`,
    `import type A from 'm'`,
    `const important = 1; important`,
    `import`,
  ]) {
    assert.equal(reachImports(code), code);
  }
});
