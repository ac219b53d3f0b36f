import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findSnippets, type Snippet } from './find-snippets.ts';
import { FreshMachine } from './fresh-machine.ts';

const snippets = findSnippets();
let machine: FreshMachine;
before(async () => {
  machine = await FreshMachine.start();
});
after(() => machine.close());

test('every block of a document is run, or says why it is only shown', () => {
  assert.ok(snippets.length > 20, `${snippets.length} blocks`);
  const neither = snippets.filter((snippet) => snippet.mark?.kind !== 'shown' && runnerOf(snippet) === null);
  assert.deepEqual(
    neither.map(({ place }) => place),
    [],
  );
});

// In their order, on one machine: a reader copies them one after the other.
for (const snippet of inReadingOrder(snippets)) {
  const run = snippet.mark?.kind === 'shown' ? null : runnerOf(snippet);
  if (run !== null) test(`${snippet.place} works as printed`, async () => void (await run(snippet.text)));
}

/** The guides are about the server of `make run`; the README goes on to one that asks for keys. */
function inReadingOrder(all: readonly Snippet[]): readonly Snippet[] {
  const guides = all.filter(({ path }) => path.startsWith('docs/'));
  return [...guides, ...all.filter(({ path }) => path === 'README.md')];
}

type Runner = (text: string) => Promise<unknown>;

function runnerOf({ path, language, mark }: Snippet): Runner | null {
  // By test/sdk/readme.test.ts, which also compares what they print.
  if (path === 'packages/sdk/README.md' && language === 'ts') return () => Promise.resolve();
  // By test/clients/sdk-python/sdk-python.test.ts, in the same way.
  if (path === 'packages/sdk-python/README.md' && language === 'python') return () => Promise.resolve();
  if (path.startsWith('packages/')) return null;
  if (language === 'ts') return (text) => machine.typescript(text);
  return language === 'sh' && mark?.kind !== 'shown' ? (text) => machine.shell(text) : null;
}
