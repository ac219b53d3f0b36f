import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { JsAdapters } from './js-adapters.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
/** How many cases each has, and what its example prints. */
const ADAPTERS = {
  'ai-sdk': { cases: 10, printed: /^42\n$/ },
  computesdk: { cases: 11, printed: /^42\n$/ },
  mastra: { cases: 10, printed: /^42\n$/ },
  'openai-agents': { cases: 12, printed: /^42\n$/ },
} as const;
const NAMES = Object.keys(ADAPTERS) as readonly (keyof typeof ADAPTERS)[];

suite('adapters for frameworks in JavaScript', { timeout: 300_000 }, () => {
  let adapters: JsAdapters;
  before(async () => {
    adapters = await JsAdapters.start(...NAMES);
  });
  after(() => adapters.destroy());

  for (const name of NAMES) {
    const { cases, printed } = ADAPTERS[name];
    test(`${name}: works with the published framework`, async () => {
      assert.equal(await adapters.passed(name), cases);
    });

    test(`${name}: its example works as printed`, async () => {
      assert.match(await adapters.program(exampleOf(name)), printed);
    });
  }

  test('the types of the packages fit those of the frameworks', async () => {
    await adapters.check(...NAMES.map(exampleOf));
    await assert.rejects(
      adapters.check("import { svc } from '@svc/computesdk'; svc({ imagine: 'x' });"),
      /imagine/,
    );
  });

  test('no sandbox is left', async () => {
    const left =
      "import { Sandbox } from '@svc/sdk'; console.log((await Array.fromAsync(Sandbox.list())).length);";
    assert.equal(await adapters.program(left), '0\n');
  });
});

test('the guide has the examples of the packages', () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/frameworks.md'), 'utf8');
  for (const name of NAMES) assert.ok(guide.includes(exampleOf(name)), name);
});

function exampleOf(name: string): string {
  const readme = readFileSync(join(ROOT, 'adapters', name, 'README.md'), 'utf8');
  const [, block = ''] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? [];
  assert.notEqual(block, '', name);
  return block;
}
