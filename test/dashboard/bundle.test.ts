import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, test } from 'node:test';
import { buildDashboard } from './dashboard-fixture.ts';

const BUILD = resolve(import.meta.dirname, '../../packages/dashboard/build');
const MAX_FIRST_PAGE_BYTES = 350_000;

before(buildDashboard);

/** What the browser loads before the first page is there: what `index.html` names, and what that imports at once. */
function firstFiles(): readonly string[] {
  const found = new Set<string>();
  const follow = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    const text = readFileSync(join(BUILD, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g))
      follow(`assets/${name}`);
  };
  const html = readFileSync(join(BUILD, 'index.html'), 'utf8');
  for (const [, path = ''] of html.matchAll(/(?:src|href)="\/?(assets\/[^"]+)"/g)) follow(path);
  return [...found];
}

test('the first page is at most 350 kB as it is sent, without terminal, charts and editor', () => {
  const files = firstFiles();
  assert.ok(files.length >= 2, `only ${files.join(', ')}`);
  const bytes = files
    .map((path) => statSync(join(BUILD, `${path}.gz`)).size)
    .reduce((sum, size) => sum + size, 0);
  assert.ok(bytes > 50_000 && bytes <= MAX_FIRST_PAGE_BYTES, `${bytes} bytes`);
  for (const path of files)
    assert.doesNotMatch(readFileSync(join(BUILD, path), 'utf8'), /xterm-rows|uplot|cm-gutters/, path);
});

test('the page holds no script and no style of its own', () => {
  const html = readFileSync(join(BUILD, 'index.html'), 'utf8');
  assert.doesNotMatch(html, /<style|style=|\son\w+=|<script(?![^>]*\ssrc=)|https?:\/\//);
});
