import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { isShipped, readSources } from './source-files.ts';
import { findCoinedNames, findRiddles, MOST_RIDDLES, readTexts } from './words.ts';

const ROOT = resolve(import.meta.dirname, '..');
const MAX_LINES = 400;
/** The subjects of later commits are checked. */
const SUBJECTS_SINCE = '7ef5b0dd39ef38c59072d7312b1505ef5405fd59';
const MAX_SUBJECT_LENGTH = 60;
const DECISION_PARTS = '**Context.** **Decision.** **Consequences.**';
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
const documents = readSources('*.md', 'docs/**/*.md', '{adapters,packages}/**/*.md');
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

test('no file names a path of a personal machine', () => {
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

test('a decision has its number, a title, its context, the decision and its consequences', () => {
  const decisions = documents.filter(({ path }) => path.startsWith('docs/decisions/'));
  const badly = decisions.filter(({ path, text }) => {
    const [number] = basename(path).split('-');
    const parts = text.match(/^\*\*(?:Context|Decision|Consequences)\.\*\*/gm);
    return !text.startsWith(`# ${number}: `) || parts?.join(' ') !== DECISION_PARTS;
  });
  assert.ok(decisions.length > 50, `${decisions.length} decisions`);
  assert.deepEqual(
    badly.map(({ path }) => path),
    [],
  );
});

test('titles of tests begin with their subject', () => {
  const vague =
    /\btest(?:Once)?\(\s*(['"`])((?:what|whose?|whom|anything|its?|they|those|others|one (?:that|which|of)) .*?)\1,/g;
  const badly = code.flatMap(({ path, text }) =>
    [...text.matchAll(vague)].map(([, , title]) => `${path}: ${title}`),
  );
  assert.deepEqual(badly, []);
});

test('the list of guards names files and tests that exist', () => {
  const list = documents.find(({ path }) => path === 'docs/internals/guards.md')?.text ?? '';
  const tests = code.filter(({ path }) => /\.(?:test|suite)\.ts$/.test(path)).map(({ text }) => text);
  const broken = list.split(/^## /m).flatMap((section) => {
    const folder = `packages/${section.split('\n')[0]}`;
    const rows = [...section.matchAll(/^\| .* \| `([^`]+)` \| (.*) \|$/gm)];
    return rows.flatMap(([row, file = '', title = '']) =>
      existsSync(join(ROOT, folder, file)) && tests.some((text) => text.includes(title)) ? [] : [row],
    );
  });
  assert.match(list, /^## server$/m);
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

for (const area of ['packages', 'elsewhere'] as const) {
  const most = MOST_RIDDLES[area];
  test(`${area}: sentences name their subject, with ${most} riddle words at most`, () => {
    const count = readTexts(area).reduce((sum, { text }) => sum + findRiddles(text).length, 0);
    assert.ok(count <= most, `${count} riddle words; find them with: make house LIST=1`);
  });
}

test('names use the usual word where there is one', () => {
  const coined = readTexts('packages').flatMap((file) =>
    [...findCoinedNames(file)].map(([name, usual]) => `${file.path}: ${name}; the usual word is: ${usual}`),
  );
  assert.deepEqual(coined, []);
});

test('riddle words and made-up names are found', () => {
  // Written in parts, so that these lines are no offence themselves.
  const parts = ['A caller who asks.\nW', 'ho asks is told.\nWho', 'ever rest', 's, and no', 'body else.'];
  const text = parts.join('');
  assert.deepEqual(findRiddles(text), [2, 3, 3]);
  const file = { path: 'packages/x/src/keyed-turns.ts', text: 'class Turn {}\nconst oldNEWS = 1, wish = 2;' };
  const names = { 'keyed-turns': 'mutex', oldNEWS: 'changes' };
  assert.deepEqual(Object.fromEntries(findCoinedNames(file)), names);
});

test('subjects of commits say their area, in 60 characters at most', () => {
  const offences = subjectsSince(SUBJECTS_SINCE).filter(
    (subject) => subject.length > MAX_SUBJECT_LENGTH || !/^[a-z][\w ,-]*: \S/.test(subject),
  );
  assert.deepEqual(offences, []);
});

/** None where there is no git, or the history does not reach back to the commit. */
function subjectsSince(commit: string): readonly string[] {
  try {
    // The checkout may belong to another user, which git refuses otherwise.
    const args = ['-c', 'safe.directory=*', 'log', '--format=%s', `${commit}..HEAD`];
    const subjects = execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return subjects.split('\n').filter((subject) => subject !== '');
  } catch {
    return [];
  }
}

/** As `name`, `name/`, `src/name` or the head of a path. */
function isNamed(text: string, folder: string): boolean {
  return new RegExp(`\`(src/)?${folder}(/[^\`]*)?\``).test(text);
}
