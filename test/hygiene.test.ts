import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { isShipped, readSources } from './source-files.ts';

const ROOT = resolve(import.meta.dirname, '..');
const MAX_LINES = 400;
const FORBIDDEN_NAMES = new Set([
  'utils',
  'helpers',
  'common',
  'shared',
  'misc',
  'manager',
  'service',
  'base',
  'types',
]);

const code = readSources('{packages,test,bench,scripts}/**/*.{ts,tsx,c,h,sh}');
const documents = readSources('*.md', 'docs/**/*.md', 'packages/**/*.md');
const shipped = code.filter(isShipped);

function offenders(
  files: readonly { path: string; text: string }[],
  isOffence: (line: string) => boolean,
): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) => (isOffence(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
}

test('there is something to look at', () => {
  assert.ok(code.length > 150 && documents.length > 5, `${code.length} files, ${documents.length} documents`);
});

test('no file is longer than 400 lines', () => {
  const long = code.filter(({ text }) => text.trimEnd().split('\n').length > MAX_LINES);
  assert.deepEqual(
    long.map(({ path }) => path),
    [],
  );
});

test('files are named after what they hold: components as they are called, all others in kebab case', () => {
  const badly = code.filter(({ path }) => {
    const [name = ''] = basename(path).split('.');
    const form = path.endsWith('.tsx') ? /^(main|([A-Z][a-z0-9]*)+)$/ : /^[a-z0-9]+(-[a-z0-9]+)*$/;
    return FORBIDDEN_NAMES.has(name) || !form.test(name);
  });
  assert.deepEqual(
    badly.map(({ path }) => path),
    [],
  );
});

test('every export is named where it is exported', () => {
  const typescript = code.filter(({ path }) => /\.tsx?$/.test(path));
  assert.deepEqual(
    offenders(typescript, (line) => /^export (\*|default)\b/.test(line)),
    [],
  );
});

test('only config.ts reads the environment', () => {
  const others = shipped.filter(({ path }) => basename(path) !== 'config.ts');
  assert.deepEqual(
    offenders(others, (line) => /\bprocess\.env\b/.test(line)),
    [],
  );
});

test('no test is skipped, alone or unfinished, and nothing is left to do', () => {
  const marks =
    /\b(test|it|describe|suite)\.(skip|only|todo)\b|\b(skip|only|todo): true\b|\b(TO)DO\b|\b(FIX)ME\b/;
  assert.deepEqual(
    offenders([...code, ...documents], (line) => marks.test(line)),
    [],
  );
});

test("no file names a path of somebody's machine", () => {
  // Written in two parts, so that this line is no offence itself.
  const paths = new RegExp(['/wo', 'rk/|/Us', 'ers/'].join(''));
  assert.deepEqual(
    offenders([...code, ...documents], (line) => paths.test(line)),
    [],
  );
});

test('links in documents lead to files that exist', () => {
  const broken = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(ROOT, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test('links to a heading lead to one that exists', () => {
  const headings = new Map(documents.map(({ path, text }) => [resolve(ROOT, path), new Set(anchors(text))]));
  const broken = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
      .filter(([, target = '', anchor = '']) => {
        const file = target === '' ? resolve(ROOT, path) : resolve(ROOT, dirname(path), target);
        return headings.get(file)?.has(anchor) === false;
      })
      .map(([link]) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

/** As web pages of repositories name them: lower case, hyphens for spaces, no punctuation. */
function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test('the README of a package names every folder of its sources', () => {
  const unnamed = readSources('packages/*/README.md').flatMap(({ path, text }) => {
    const source = resolve(ROOT, dirname(path), 'src');
    const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return folders.filter(({ name }) => !isNamed(text, name)).map(({ name }) => `${path}: ${name}`);
  });
  assert.deepEqual(unnamed, []);
});

/** As `name`, `name/`, `src/name` or the head of a path. */
function isNamed(text: string, folder: string): boolean {
  return new RegExp(`\`(src/)?${folder}(/[^\`]*)?\``).test(text);
}
