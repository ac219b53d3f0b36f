import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCycle } from './find-cycle.ts';
import { betweenFiles, betweenFolders, relativeImports } from './import-graph.ts';
import { ROOMS, roomOf } from './rooms.ts';
import { importsOf, isShipped, readSources } from './source-files.ts';
import type { Import, SourceFile } from './source-files.ts';

/** What callers and servers agree on: all of it takes some 40 ms to load, its single modules next to nothing. */
const QUICK_CONTRACT = [
  '@svc/contract/async',
  '@svc/contract/bounded-json',
  '@svc/contract/errno',
  '@svc/contract/errors',
  '@svc/contract/image-reference',
  '@svc/contract/node-disk-fault',
  '@svc/contract/node-http',
  '@svc/contract/node-listen',
  '@svc/contract/node-pause',
  '@svc/contract/node-program',
  '@svc/contract/node-socket-transport',
  '@svc/contract/node-spawn',
  '@svc/contract/orchestrator',
  '@svc/contract/out-of-files',
  '@svc/contract/channel',
  '@svc/contract/frames',
  '@svc/contract/spec',
  '@svc/contract/visible',
];
const CONTRACT = ['@svc/contract', '@svc/contract/rest', '@svc/contract/retry', ...QUICK_CONTRACT];
/** Clients know the schemas as types alone. */
const SDK_CONTRACT = [
  '@svc/contract/async',
  '@svc/contract/errno',
  '@svc/contract/errors',
  '@svc/contract/channel',
  '@svc/contract/retry',
  '@svc/contract/routes',
  '@svc/contract/volume-path',
];

/** In the contract: which image is meant is nothing that a client asks. */
const NODE_ALONE = /\/(?:node-[a-z-]+|image-reference)\.ts$/;

/** What only tests import. */
const TESTING_ENTRY = '@svc/contract/testing';

/** Who may import whom. `dynamic`: only loaded on demand, or as a type, so that it costs nothing until it is used. */
const MAY_IMPORT: Readonly<
  Record<string, { readonly static: readonly string[]; readonly dynamic: readonly string[] }>
> = {
  contract: { static: [], dynamic: [] },
  engine: { static: QUICK_CONTRACT, dynamic: ['@svc/contract', '@svc/contract/check-spec'] },
  server: {
    static: [
      ...CONTRACT,
      '@svc/contract/mcp',
      '@svc/engine/client',
      '@svc/engine/policy',
      '@svc/engine/process-log',
    ],
    dynamic: [],
  },
  sdk: { static: SDK_CONTRACT, dynamic: ['@svc/contract', '@svc/contract/rest'] },
  /** Schemas as types alone: they would be most of what a browser loads. */
  dashboard: {
    static: [
      '@svc/contract/error-descriptions',
      '@svc/contract/event-types',
      '@svc/contract/errors',
      '@svc/contract/visible',
      '@svc/contract/volume-path',
      '@svc/sdk',
    ],
    dynamic: ['@svc/contract/rest'],
  },
  cli: {
    static: [...CONTRACT, '@svc/sdk', '@svc/sdk/node'],
    dynamic: [
      '@svc/engine/backup',
      '@svc/engine/client',
      '@svc/engine/doctor',
      '@svc/server/admin',
      '@svc/server/keys',
      '@svc/server/local',
    ],
  },
};

const SLOW_TO_LOAD =
  /^(typebox|kysely|fastify|zod|pg|jose|@modelcontextprotocol)(\/|$)|^@svc\/contract(\/rest|\/check-spec)?$/;

/** Classes that act on this host, and the only places that may construct them. */
const ADAPTERS = ['SvcHostCalls', 'ImageStore', 'OverlayRootfs', 'LinuxNetwork', 'DiskVolumes', 'OciRuntime'];
const COMPOSITION_ROOTS =
  /^packages\/engine\/src\/(backup|daemon|doctor)\/|^packages\/engine\/src\/runtime\/(runc|runsc|crun)\.ts$/;

const sources = readSources('packages/*/src/**/*.{ts,tsx}');
const shipped = sources.filter(isShipped);

test('the sources are found and their imports understood', () => {
  assert.ok(shipped.length > 100, `only ${shipped.length} files`);
  const text = `import a from 'a';
import {
  b,
} from 'b';
import type { C } from 'c';
import 'd';
export { e } from './e.ts';
const f = await import('f');`;
  assert.deepEqual(
    importsOf(text).map(({ specifier, kind }) => `${kind} ${specifier}`),
    ['static a', 'static b', 'type c', 'static d', 'static ./e.ts', 'dynamic f'],
  );
});

test('packages import only what the design allows', () => {
  const offences = sources.flatMap((file) => {
    const name = packageOf(file.path);
    const rule = MAY_IMPORT[name];
    if (rule === undefined)
      return [`${file.path}: package ${name} is not in the table of who may import whom`];
    return importsOf(file.text)
      .filter(({ specifier }) => specifier.startsWith('@svc/'))
      .filter((used) => !isAllowed(used, rule) && !(used.specifier === TESTING_ENTRY && !isShipped(file)))
      .map(({ specifier, kind }) => `${file.path}: ${kind} import of ${specifier}`);
  });
  assert.deepEqual(offences, []);
});

test("of the server, only its orchestrator and what keeps its host know the engine's client", () => {
  const offences = sources
    .filter(({ path }) => /^packages\/server\/src\/(?!orchestrator\/|host\/)/.test(path))
    .flatMap((file) =>
      importsOf(file.text)
        .filter(({ specifier }) => specifier === '@svc/engine/client')
        .map(({ kind }) => `${file.path}: ${kind} import`),
    );
  assert.deepEqual(offences, []);
});

test("commands work on the server's folder as its user: nothing else loads what does", () => {
  const offences = shipped
    .filter(({ path }) => path.startsWith('packages/cli/') && path !== 'packages/cli/src/local-store.ts')
    .flatMap((file) =>
      importsOf(file.text)
        .filter(({ specifier, kind }) => kind !== 'type' && /^@svc\/server\/(local|keys)$/.test(specifier))
        .map(({ specifier }) => `${file.path}: ${specifier}; use loadLocal or loadKeys`),
    );
  assert.deepEqual(offences, []);
});

test('no relative import leaves its package', () => {
  const offences = readSources('packages/*/{src,test}/**/*.ts').flatMap((file) =>
    relativeImports(file)
      .filter(({ target }) => packageOf(target) !== packageOf(file.path))
      .map(({ specifier }) => `${file.path}: ${specifier}`),
  );
  assert.deepEqual(offences, []);
});

test('shipped code imports no tests', () => {
  const offences = shipped.flatMap((file) =>
    relativeImports(file)
      .filter(({ target }) => target.endsWith('.ts') && !isShipped({ path: target, text: '' }))
      .map(({ specifier }) => `${file.path}: ${specifier}`),
  );
  assert.deepEqual(offences, []);
});

test("the engine's client module loads only leaf modules of the engine", () => {
  const isLeaf = (path: string) =>
    shipped.some((file) => file.path === path && relativeImports(file).every(({ kind }) => kind === 'type'));
  const offences = shipped
    .filter(({ path }) => path.startsWith('packages/engine/src/client/'))
    .flatMap((file) =>
      relativeImports(file)
        .filter(({ kind, target }) => kind !== 'type' && !target.startsWith('packages/engine/src/client/'))
        .filter(({ target }) => !isLeaf(target))
        .map(({ specifier }) => `${file.path}: ${specifier}`),
    );
  assert.deepEqual(offences, []);
});

test('of the contract, browsers can load all but what says that it is for Node', () => {
  const offences = shipped
    .filter(({ path }) => path.startsWith('packages/contract/src/') && !NODE_ALONE.test(path))
    .flatMap((file) =>
      importsOf(file.text)
        .filter(({ specifier }) => specifier.startsWith('node:'))
        .map(({ specifier }) => `${file.path}: ${specifier}`),
    );
  assert.deepEqual(offences, []);
});

test('only composition roots construct adapters', () => {
  const construction = new RegExp(`new (${ADAPTERS.join('|')})\\(`);
  const offences = shipped
    .filter(({ path, text }) => construction.test(text) && !COMPOSITION_ROOTS.test(path))
    .map(({ path }) => path);
  assert.deepEqual(offences, []);
});

test('rooms import from those further in alone, types included', () => {
  const offences = shipped.flatMap((file) => {
    const name = packageOf(file.path);
    const rooms = ROOMS[name];
    if (rooms === undefined) return [`${file.path}: package ${name} has no order in test/rooms.ts`];
    const placeOf = (path: string) => roomOf(rooms, path.slice(`packages/${name}/src/`.length));
    const here = placeOf(file.path);
    if (here < 0) return [`${file.path}: its folder has no place in test/rooms.ts`];
    return relativeImports(file)
      .filter(({ target }) => target.startsWith(`packages/${name}/src/`) && placeOf(target) > here)
      .map(({ specifier }) => `${file.path}: ${specifier} is further out`);
  });
  assert.deepEqual(offences, []);
});

test('every room of the order is there', () => {
  const missing = Object.entries(ROOMS).flatMap(([name, rooms]) =>
    rooms
      .map((room) => `packages/${name}/src/${room}`)
      .filter((path) => !shipped.some((file) => file.path === path || file.path.startsWith(`${path}/`))),
  );
  assert.deepEqual(missing, []);
});

test('no imports form a circle: between files or between folders, types and tests included', () => {
  const files = betweenFiles(readSources('{packages,test,bench,scripts,examples}/**/*.{ts,tsx}'));
  assert.equal(findCycle(files), undefined);
  assert.equal(findCycle(betweenFolders(files)), undefined);
});

test('a circle between folders is found, also when no files form one', () => {
  const graph = new Map([
    ['packages/x/src/a/one.ts', ['packages/x/src/b/two.ts']],
    ['packages/x/src/b/two.ts', []],
    ['packages/x/src/b/three.ts', ['packages/x/src/a/four.ts']],
  ]);
  assert.equal(findCycle(graph), undefined);
  assert.deepEqual(findCycle(betweenFolders(graph)), [
    'packages/x/src/a',
    'packages/x/src/b',
    'packages/x/src/a',
  ]);
});

test('a circle of fixtures is found; test files, and suites beside shipped files, form none', () => {
  const fixtures = new Map([
    ['test/a/one.ts', ['test/b/two.ts']],
    ['test/b/three.ts', ['test/a/four.ts']],
  ]);
  assert.deepEqual(findCycle(betweenFolders(fixtures)), ['test/a', 'test/b', 'test/a']);
  const tests = new Map([
    ['test/a/one.test.ts', ['test/b/two.ts']],
    ['test/b/three.ts', ['test/a/four.ts']],
    ['packages/x/src/a/port.suite.ts', ['packages/x/src/testing/fake.ts']],
    ['packages/x/src/testing/fake.ts', ['packages/x/src/a/port.ts']],
  ]);
  assert.equal(findCycle(betweenFolders(tests)), undefined);
});

test('all SQL of the server is in its store', () => {
  const sql = /^import (?!type)[^;]*'kysely';|\.(selectFrom|insertInto|updateTable|deleteFrom)\(/m;
  const offences = shipped
    .filter(({ path }) => /^packages\/server\/src\/(?!store\/)/.test(path))
    .filter(({ text }) => sql.test(text))
    .map(({ path }) => path);
  assert.deepEqual(offences, []);
});

test('programs that start before the server answers load no schemas, no store and no framework', () => {
  const entries = [
    'packages/cli/src/main.ts',
    'packages/cli/src/commands/server.ts',
    'packages/server/src/local-commands/index.ts',
    'packages/server/src/main.ts',
    'packages/engine/src/daemon/main.ts',
  ];
  const reached = reachedFrom(entries);
  const offences = shipped
    .filter(({ path }) => reached.has(path))
    .flatMap((file) =>
      importsOf(file.text)
        .filter(({ specifier, kind }) => kind === 'static' && SLOW_TO_LOAD.test(specifier))
        .map(({ specifier }) => `${file.path}: ${specifier}`),
    );
  assert.deepEqual(offences, []);
});

test("the SDK's entry for browsers needs neither Node nor schemas", () => {
  const reached = reachedFrom(['packages/sdk/src/index.ts', 'packages/sdk/src/platform/browser-platform.ts']);
  assert.ok(reached.has('packages/sdk/src/platform/browser-dial.ts'));
  const offences = shipped
    .filter(({ path }) => reached.has(path))
    .flatMap((file) => [
      ...importsOf(file.text)
        .filter(({ specifier, kind }) => kind !== 'type' && specifier.startsWith('node:'))
        .map(({ specifier }) => `${file.path}: ${specifier}`),
      // Node 22 and some browsers do not know it yet.
      ...(/^\s*(await )?using /m.test(file.text) ? [`${file.path}: using`] : []),
      ...(/\b(Buffer\.|process\.(env|getBuiltinModule|versions))/.test(file.text)
        ? [`${file.path}: a global of Node`]
        : []),
    ]);
  assert.deepEqual(offences, []);
});

test('the web-facing process loads MCP, SSH and PostgreSQL on first use', () => {
  const reached = reachedFrom(['packages/server/src/web.ts']);
  assert.ok(reached.has('packages/server/src/transports/mcp/register-mcp.ts'));
  const files = shipped.filter(({ path }) => reached.has(path));
  assert.deepEqual(filesThatLoad(files, /^(@modelcontextprotocol\/|ssh2$|pg$)/), []);
});

test('schemas are there without TypeBox, almost half of what a server would load: it comes with the first check', () => {
  const files = shipped.filter(({ path }) => /^packages\/(contract|server)\//.test(path));
  assert.deepEqual(filesThatLoad(files, /^typebox(\/|$)/), []);
});

test('no file imports node:http as a module: that loads fetch too, 50 ms in each of four processes', () => {
  assert.deepEqual(filesThatLoad(shipped, /^node:http$/), []);
});

test('the engine and the server start programs by a spawn that does not end them when no more files may be opened', () => {
  const ours = shipped.filter(({ path }) => /^packages\/(engine|server)\/src\/(?!testing\/)/.test(path));
  const starters = ours.filter(({ text }) =>
    /import (?!type)[^;]*\bspawn\b[^;]*'node:child_process'/.test(text),
  );
  assert.deepEqual(
    starters.map(({ path }) => path),
    [],
  );
});

function filesThatLoad(files: readonly SourceFile[], module: RegExp): readonly string[] {
  const loads = ({ specifier, kind }: Import) => kind === 'static' && module.test(specifier);
  return files.filter(({ text }) => importsOf(text).some(loads)).map(({ path }) => path);
}

/** Files that run as soon as one of these does. */
function reachedFrom(entries: readonly string[]): ReadonlySet<string> {
  const files = new Map(shipped.map((file) => [file.path, file]));
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const file = files.get(path);
    if (file === undefined || reached.has(path)) return;
    reached.add(path);
    for (const { kind, target } of relativeImports(file)) if (kind === 'static') visit(target);
  };
  for (const entry of entries) visit(entry);
  return reached;
}

function packageOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function isAllowed(
  { specifier, kind }: Import,
  rule: { static: readonly string[]; dynamic: readonly string[] },
): boolean {
  return rule.static.includes(specifier) || (kind !== 'static' && rule.dynamic.includes(specifier));
}
