import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import fc from 'fast-check';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { body } from '../testing/sandboxes.ts';
import type { Database } from '../store/database.ts';
import { startTestServer, type TestServer } from '../testing/test-server.ts';

interface ModelSandbox {
  status: string;
  isEphemeral: boolean;
  isBroken: boolean;
  /** It ended unobserved. */
  hasEnded: boolean;
}

/** What callers may believe: a state per name, and whether the engine is there. */
interface Model {
  readonly sandboxes: Map<string, ModelSandbox>;
  isAway: boolean;
}

interface Real {
  readonly orchestrator: FakeOrchestrator;
  readonly restart: () => Promise<TestServer>;
  server: TestServer;
}

type Step = (model: Model, real: Real) => Promise<void>;

/** Sequences that would begin later are left out: a slow machine tries fewer of them. */
const BEGIN_WITHIN_MS = 60_000;

/** Any sequence of calls, outages, crashes and restarts leaves records, engine and runs where a simple model says. */
export function lifecycleModel(
  name: string,
  open: (
    t: TestContext,
  ) => Promise<() => Promise<{ readonly database?: Database; readonly folder?: string }>>,
): void {
  test(`on ${name}, after any requests and failures sandboxes are where a simple model says`, async (t) => {
    const lastBegin = performance.now() + BEGIN_WITHIN_MS;
    await fc.assert(
      fc.asyncProperty(fc.array(STEPS, { minLength: 1, maxLength: 14 }), async (steps) => {
        if (performance.now() > lastBegin) return;
        const model: Model = { sandboxes: new Map(), isAway: false };
        const real = await begin(t, await open(t));
        try {
          for (const [, step] of steps) {
            await step(model, real);
            await assertAgreement(model, real);
          }
        } finally {
          await real.server.close();
        }
      }),
      { numRuns: 12, examples: EXAMPLES.map((steps) => [steps]), endOnFailure: true },
    );
  });
}

async function begin(
  t: TestContext,
  reopen: () => Promise<{ readonly database?: Database; readonly folder?: string }>,
): Promise<Real> {
  const orchestrator = new FakeOrchestrator();
  const restart = async () => {
    const server = await startTestServer(t, { orchestrator, ...(await reopen()) });
    await waitUntil(() => server.health.isKnown);
    return server;
  };
  return { orchestrator, restart, server: await restart() };
}

const ACTIVE = new Set(['running', 'temporarily_unavailable', 'recovery_decision_required']);

async function assertAgreement({ sandboxes, isAway }: Model, { server, orchestrator }: Real): Promise<void> {
  await waitUntil(() => server.health.current.isHealthy !== isAway);
  const expected = Object.fromEntries([...sandboxes].map(([name, { status }]) => [name, status]));
  let seen: unknown;
  const isSame = async () => {
    const { body: page } = await server.rest('GET', '/sandboxes?limit=100');
    seen = Object.fromEntries(
      page.data.map((each: { name: string; status: string }) => [each.name, each.status]),
    );
    return isEqual(seen, expected);
  };
  await waitUntil(isSame).catch(() => assert.deepEqual(seen, expected));
  const open = await server.database.selectFrom('runs').selectAll().where('ended_at', 'is', null).execute();
  const active = [...sandboxes.values()].filter(({ status }) => ACTIVE.has(status));
  const underWay = [...sandboxes.values()].filter(
    ({ status }) => status === 'starting' || status === 'stopping',
  );
  assert.ok(
    open.length >= active.length && open.length <= active.length + underWay.length,
    `${open.length} runs are open`,
  );
  if (isAway) return;
  // Deleted sandboxes leave the engine in the background.
  await waitUntil(async () => {
    const running = (await orchestrator.list()).filter(({ state }) => state === 'running');
    return running.length === active.length;
  }, 'the engine running what the model says');
}

function isEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    // They differ; the caller looks again.
    return false;
  }
}

const NAMES = ['a', 'b'] as const;

function create(name: string, isStarted: boolean, isEphemeral: boolean, isBroken: boolean): Step {
  return async (model, { server }) => {
    const reference = isBroken ? 'missing' : 'x';
    const lifecycle = { ephemeral: isEphemeral };
    const answer = await server.rest('POST', `/sandboxes?start=${isStarted}`, {
      body: body(name, { reference, lifecycle }),
    });
    const expected = isStarted && model.isAway ? 502 : model.sandboxes.has(name) ? 409 : 200;
    assert.equal(answer.status, expected);
    if (expected !== 200) return;
    const status = isStarted ? afterStart(isBroken) : 'created';
    model.sandboxes.set(name, { status, isEphemeral, isBroken, hasEnded: false });
  };
}

function afterStart(isBroken: boolean): string {
  return isBroken ? 'failed' : 'running';
}

/** A call about one sandbox: away, missing and illegal are the same for all of them. */
function verb(
  name: string,
  path: string,
  legal: readonly string[],
  apply: (sandbox: ModelSandbox, model: Model) => void,
  options: { readonly payload?: object; readonly needsEngine?: boolean; readonly method?: string } = {},
): Step {
  const { payload = {}, needsEngine = true, method = 'POST' } = options;
  return async (model, { server }) => {
    const sandbox = model.sandboxes.get(name);
    const isLegal = sandbox !== undefined && legal.includes(sandbox.status);
    const refused = sandbox === undefined ? 404 : 409;
    const expected = needsEngine && model.isAway ? 502 : isLegal ? 200 : refused;
    const { status } = await server.rest(method, `/sandboxes/by-name/${name}${path}`, { body: payload });
    assert.equal(status, expected, `${path} of ${JSON.stringify(sandbox)}`);
    if (expected === 200 && sandbox !== undefined) apply(sandbox, model);
  };
}

const start = (name: string) =>
  verb(name, '/start', ['created', 'stopped', 'failed'], (sandbox) => {
    sandbox.status = afterStart(sandbox.isBroken);
    sandbox.hasEnded = false;
  });

const stop = (name: string) =>
  verb(
    name,
    '/stop',
    ['running', 'temporarily_unavailable', 'recovery_decision_required'],
    (sandbox, model) => rest(model, name, sandbox, 'stopped'),
  );

const EVERY_STATE = ['created', 'starting', 'running', 'stopping', 'stopped', 'failed', ...ACTIVE];
const remove = (name: string) =>
  verb(name, '', EVERY_STATE, (_, model) => void model.sandboxes.delete(name), { method: 'DELETE' });

function recover(name: string, action: 'wait' | 'restart' | 'stop'): Step {
  const unavailable = ['temporarily_unavailable', 'recovery_decision_required'];
  return verb(
    name,
    '/recover',
    unavailable,
    (sandbox, model) => {
      sandbox.status = { wait: 'temporarily_unavailable', restart: 'starting', stop: 'stopping' }[action];
      if (!model.isAway) returnOf(model, name, sandbox);
    },
    { payload: { action }, needsEngine: false },
  );
}

/** Its run is over: an ephemeral one is gone. */
function rest(model: Model, name: string, sandbox: ModelSandbox, status: string): void {
  sandbox.status = status;
  if (sandbox.isEphemeral) model.sandboxes.delete(name);
}

/** What the return of the engine means for one sandbox. */
function returnOf(model: Model, name: string, sandbox: ModelSandbox): void {
  const { status, hasEnded } = sandbox;
  sandbox.hasEnded = false;
  if (status === 'starting') sandbox.status = 'running';
  else if (status === 'stopping') rest(model, name, sandbox, hasEnded ? 'failed' : 'stopped');
  else if (hasEnded) rest(model, name, sandbox, 'failed');
  else if (status === 'temporarily_unavailable') sandbox.status = 'running';
}

function rename(name: string, to: string): Step {
  return async (model, { server }) => {
    const sandbox = model.sandboxes.get(name);
    const { body: found } = await server.rest('GET', `/sandboxes/by-name/${name}`);
    if (sandbox === undefined) return;
    const { status } = await server.rest('PATCH', `/sandboxes/${found.id}`, { body: { name: to } });
    assert.equal(status, model.sandboxes.has(to) && to !== name ? 409 : 200);
    if (status !== 200) return;
    model.sandboxes.delete(name);
    model.sandboxes.set(to, sandbox);
  };
}

const goAway: Step = async (model, { orchestrator }) => {
  orchestrator.goAway();
  model.isAway = true;
  for (const sandbox of model.sandboxes.values()) {
    if (sandbox.status === 'running') sandbox.status = 'temporarily_unavailable';
  }
  await Promise.resolve();
};

const comeBack: Step = async (model, { orchestrator }) => {
  orchestrator.comeBack();
  if (model.isAway) for (const [name, sandbox] of model.sandboxes) returnOf(model, name, sandbox);
  model.isAway = false;
  await Promise.resolve();
};

const endRecovery: Step = async (model, { server }) => {
  const past = new Date(0).toISOString();
  await server.database
    .updateTable('sandboxes')
    .set({ recovery_ends_at: past })
    .where('recovery_ends_at', 'is not', null)
    .execute();
  for (const sandbox of model.sandboxes.values()) {
    if (sandbox.status === 'temporarily_unavailable') sandbox.status = 'recovery_decision_required';
  }
};

const restartServer: Step = async (_, real) => {
  await real.server.close();
  real.server = await real.restart();
};

function crash(name: string): Step {
  return async (model, { server, orchestrator }) => {
    const sandbox = model.sandboxes.get(name);
    if (sandbox === undefined || !ACTIVE.has(sandbox.status) || sandbox.hasEnded) return;
    const { body: found } = await server.rest('GET', `/sandboxes/by-name/${name}`);
    orchestrator.end(found.id, 'crashed', 'it crashed');
    sandbox.hasEnded = model.isAway;
    if (!model.isAway) rest(model, name, sandbox, 'failed');
  };
}

/** Each with its name, so that a failing sequence can be read. */
type NamedStep = readonly [name: string, step: Step];

function named(make: (name: string) => Step, what: string): readonly NamedStep[] {
  return NAMES.map((name) => [`${what} ${name}`, make(name)]);
}

const STEP_LIST: readonly NamedStep[] = [
  ...named((name) => create(name, true, false, false), 'run'),
  ...named((name) => create(name, true, true, false), 'run ephemeral'),
  ...named((name) => create(name, true, false, true), 'run broken'),
  ...named((name) => create(name, false, false, false), 'create'),
  ...named(start, 'start'),
  ...named(stop, 'stop'),
  ...named(remove, 'delete'),
  ...named((name) => recover(name, 'wait'), 'wait for'),
  ...named((name) => recover(name, 'restart'), 'restart'),
  ...named((name) => recover(name, 'stop'), 'recover by stopping'),
  ...named(crash, 'crash'),
  ['rename a to b', rename('a', 'b')],
  ['engine away', goAway],
  ['engine away', goAway],
  ['engine back', comeBack],
  ['engine back', comeBack],
  ['recovery time over', endRecovery],
  ['server restart', restartServer],
];

const STEPS = fc.constantFrom(...STEP_LIST);

function sequence(...names: readonly string[]): NamedStep[] {
  return names.map((name) => {
    const step = STEP_LIST.find(([each]) => each === name);
    if (step === undefined) throw new Error(`there is no step '${name}'`);
    return step as [string, Step];
  });
}

/** Those that chance seldom finds. */
const EXAMPLES = [
  sequence(
    'run a',
    'engine away',
    'recovery time over',
    'server restart',
    'restart a',
    'server restart',
    'engine back',
  ),
  sequence(
    'run a',
    'run ephemeral b',
    'engine away',
    'crash a',
    'crash b',
    'recovery time over',
    'engine back',
  ),
  sequence(
    'run ephemeral a',
    'engine away',
    'recover by stopping a',
    'server restart',
    'engine back',
    'run a',
  ),
  sequence('create a', 'start a', 'stop a', 'start a', 'rename a to b', 'crash b', 'start b', 'delete b'),
];
