import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { posix, resolve } from 'node:path';
import { test } from 'node:test';
import { importsOf } from './source-files.ts';

/** From the bytes of a caller to what runs. */
const MOST_FILES = 12;
/** A step after which the files are those of another way, and count. `svc run` is a caller itself: it is followed to where it sends bytes. */
const GOES_ON = 'from here on as a create over REST';
const CREATE = 'A create over REST';
const ROOT = resolve(import.meta.dirname, '..');
const STEP = /^(\d+)\. (\(by [^)]+\) )?`([^`]+)`/;

interface Step {
  readonly path: string;
  /** It does not import the next one: something else, which is named, joins them. */
  readonly isJoined: boolean;
}

const ways = readWays(readFileSync(resolve(ROOT, 'ARCHITECTURE.md'), 'utf8'));

test('ARCHITECTURE.md has each way, of 4 to 12 files', () => {
  assert.deepEqual(
    [...ways.keys()],
    [
      CREATE,
      'A start over JSON-RPC',
      'An exec over the command channel',
      'runCode',
      "A command by E2B's SDK",
      'A request with a secret',
      'A page of the dashboard',
      'svc run',
    ],
  );
  for (const [title, steps] of ways) {
    assert.ok(steps.length >= 4, `${title}: only ${steps.length} files were found`);
    assert.ok(steps.length <= MOST_FILES, `${title}: ${steps.length} files`);
  }
});

test('a way that goes on as another one is counted to its end', () => {
  const create = ways.get(CREATE) ?? [];
  const start = ways.get('A start over JSON-RPC') ?? [];
  assert.equal(start.at(-1)?.path, create.at(-1)?.path);
});

test('the files of each way are there, and each imports the next or is joined with it', () => {
  const offences = [...ways].flatMap(([title, steps]) =>
    steps.flatMap(({ path, isJoined }, index) => {
      if (!existsSync(resolve(ROOT, path))) return [`${title}: there is no ${path}`];
      const before = steps[index - 1];
      const isFollowed = before === undefined || isJoined || reach(before.path).has(path);
      return isFollowed ? [] : [`${title}: ${before.path} does not import ${path}`];
    }),
  );
  assert.deepEqual(offences, []);
});

test('a file that another one does not import is seen', () => {
  const path = 'packages/server/src/dispatch/rest-dispatch.ts';
  assert.ok(reach(path).has('packages/server/src/dispatch/idempotency.ts'));
  assert.ok(!reach(path).has('packages/server/src/handlers/sandboxes/rest-sandboxes.ts'));
});

function readWays(text: string): ReadonlyMap<string, readonly Step[]> {
  const section = text.split('\n## ').find((part) => part.startsWith('Ways, file by file')) ?? '';
  const parts = section.split('\n### ').slice(1);
  const listed = new Map(
    parts.map((part) => {
      const [title = '', ...lines] = part.split('\n');
      const steps = lines.flatMap((line) => {
        const [, , joint, path] = STEP.exec(line) ?? [];
        return path === undefined ? [] : [{ path: `packages/${path}`, isJoined: joint !== undefined }];
      });
      return [title, { steps, goesOn: part.includes(GOES_ON) }];
    }),
  );
  const create = listed.get(CREATE)?.steps ?? [];
  return new Map(
    [...listed].map(([title, { steps, goesOn }]) => {
      const place = create.findIndex(({ path }) => path === steps.at(-1)?.path);
      return [title, goesOn ? [...steps, ...create.slice(place + 1)] : steps];
    }),
  );
}

/** What a file imports, itself or through the entry of another package. */
function reach(path: string): ReadonlySet<string> {
  const targets = targetsOf(path);
  const behindEntries = targets.filter((target) => !isSamePackage(path, target)).flatMap(targetsOf);
  return new Set([...targets, ...behindEntries]);
}

function targetsOf(path: string): readonly string[] {
  const text = readFileSync(resolve(ROOT, path), 'utf8');
  if (/\.[ch]$/.test(path)) {
    const source = path.slice(0, path.indexOf('/src/') + '/src/'.length);
    return [...text.matchAll(/^#include "([^"]+)"/gm)].flatMap(([, header = '']) => [
      `${source}${header}`,
      `${source}${header.replace(/\.h$/, '.c')}`,
    ]);
  }
  return importsOf(text).flatMap(({ specifier }) => {
    if (specifier.startsWith('.')) return [posix.join(posix.dirname(path), specifier)];
    return entryOf(specifier);
  });
}

/** The file behind a specifier such as `@svc/engine/client`. */
function entryOf(specifier: string): readonly string[] {
  const [, name = '', entry = ''] = /^@svc\/([^/]+)(\/.*)?$/.exec(specifier) ?? [];
  if (name === '') return [];
  const about = JSON.parse(readFileSync(resolve(ROOT, `packages/${name}/package.json`), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>;
  };
  const files = JSON.stringify(about.exports[`.${entry}`] ?? '').match(/\.\/src\/[^"]+\.ts/g) ?? [];
  return files.map((file) => posix.join(`packages/${name}`, file));
}

function isSamePackage(a: string, b: string): boolean {
  return a.split('/')[1] === b.split('/')[1];
}
