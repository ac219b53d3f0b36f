import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { PythonAdapters } from './python-adapters.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const EXAMPLES: Readonly<Record<string, RegExp>> = {
  'adapters/deepagents/README.md': /^42\n\n?$/,
  'adapters/harbor/README.md': /^42\n$/,
  'adapters/inspect/README.md': /^\['1', '2', '3'\]\nsuccess\n$/,
  'adapters/openai-agents-python/README.md': /^42\n$/,
};

let adapters: PythonAdapters;
before(async () => {
  adapters = await PythonAdapters.start();
});
after(() => adapters.destroy());

test('deepagents: the sandbox tests of LangChain pass but for those that are older than the library', async () => {
  const counted = await adapters.pytest('adapters/deepagents/test/test_deepagents.py');
  assert.match(counted, /^79 passed, 7 xfailed/);
});

test('inspect: the self-check of Inspect AI passes', async () => {
  const counted = await adapters.pytest('adapters/inspect/test/test_inspect.py');
  assert.match(counted, /^46 passed/);
});

test('harbor: environments work with the published framework', async () => {
  const counted = await adapters.pytest('adapters/harbor/test/test_harbor.py');
  assert.match(counted, /^6 passed/);
});

test('openai-agents: sessions work with the published SDK', async () => {
  const counted = await adapters.pytest('adapters/openai-agents-python/test/test_openai_agents.py');
  assert.match(counted, /^9 passed/);
});

for (const [path, printed] of Object.entries(EXAMPLES)) {
  test(`the example of ${path} works as printed`, async () => {
    assert.match(await adapters.program(exampleOf(path)), printed);
  });
}

test('the guide has the examples of the packages', () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/frameworks.md'), 'utf8');
  for (const path of Object.keys(EXAMPLES)) assert.ok(guide.includes(exampleOf(path)), path);
});

test('no sandbox is left', async () => {
  const left = 'from svc_sdk import Sandbox; print([each.name for each in Sandbox.list()])';
  assert.equal(await adapters.program(left), '[]\n');
});

function exampleOf(path: string): string {
  const [, block = ''] = /^```python\n(.*?)^```$/ms.exec(readFileSync(join(ROOT, path), 'utf8')) ?? [];
  assert.notEqual(block, '', path);
  return block;
}
