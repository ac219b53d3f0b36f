import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { E2bClients } from './start-e2b.ts';

const FOLDER = import.meta.dirname;

let clients: E2bClients;
before(async () => {
  clients = await E2bClients.start('base', 'code');
});
after(() => clients.destroy());

/** The blocks of a language in the README of a package. */
async function blocksOf(path: string, language: string): Promise<readonly string[]> {
  const [file = ''] = globSync(path, { cwd: FOLDER });
  const text = await readFile(join(FOLDER, file), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  );
}

/** Those that make a sandbox as it is; the others take keys and names that only the cloud has. */
function isQuickStart(block: string): boolean {
  return /Sandbox\.create\(\)/.test(block) && !block.includes('e2b_***');
}

/** What the comments of a block say it prints. */
function promisedBy(block: string): readonly string[] {
  return [...block.matchAll(/print\(.*(?:\/\/|#) *(?:outputs )?(.+)$|log\(.*\/\/ *(?:outputs )?(.+)$/gm)].map(
    ([, python, script]) => python ?? script ?? '',
  );
}

for (const { path, language, runner } of [
  { path: 'node_modules/e2b/README.md', language: 'ts', runner: 'node' },
  { path: 'node_modules/@e2b/code-interpreter/README.md', language: 'ts', runner: 'node' },
  { path: 'python/build/e2b-*.dist-info/METADATA', language: 'py', runner: 'python' },
  { path: 'python/build/e2b_code_interpreter-*.dist-info/METADATA', language: 'py', runner: 'python' },
] as const) {
  test(`the quick starts in ${path} run as printed`, async () => {
    const blocks = (await blocksOf(path, language)).filter(isQuickStart);
    assert.ok(blocks.length > 0, 'there is a quick start');
    for (const block of blocks) {
      const { code, stdout, stderr } = await clients[runner](block);
      assert.equal(code, 0, `${block}\n${stderr}`);
      const promised = promisedBy(block);
      assert.ok(promised.length > 0, `it promises something: ${block}`);
      assert.deepEqual(stdout.trim().split('\n'), promised, stderr);
    }
  });
}
