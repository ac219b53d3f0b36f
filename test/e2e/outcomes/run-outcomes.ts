import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ERROR_STATUS } from '@svc/contract';
import {
  EVENT_STREAM,
  pathsOf,
  REST_OPERATIONS,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import { problemOfOutput } from '../../../packages/contract/src/testing/rest-output.ts';
import type { Outcome, Outcomes, Phase } from './outcomes.ts';
import { addressOf, World, type Call, type Parts, type Reply, type Way } from './world.ts';

/** Operations that end the caller's credential. */
const LAST_WORDS: ReadonlySet<RestOperationName> = new Set(['users.remove', 'session.end']);
/** These keys belong to the caller, who may lose the organization by the call. */
const KEYS_OF_CALLER: ReadonlySet<RestOperationName> = new Set([
  'organizations.update',
  'organizations.remove',
  'members.update',
]);

/** Runs each outcome as a test of its own, on every address that the operation has. */
export function runOutcomes(groups: readonly Outcomes[], args: readonly string[] = []): void {
  describe('over HTTP on the real engine', { concurrency: false }, () => {
    let world: World;
    before(async () => {
      world = await World.start(args);
    });
    after(() => world.destroy());
    for (const phase of groups.flatMap(({ phases }) => phases)) runPhase(phase, () => world);
    runOutages(groups, () => world);
    for (const phase of groups.flatMap(({ aftermath }) => aftermath)) runPhase(phase, () => world);
  });
}

/** The engine goes away once for all of them. */
function runOutages(groups: readonly Outcomes[], worldOf: () => World): void {
  const outages = groups.flatMap((group) => group.outages);
  if (outages.length === 0) return;
  describe('while the engine is away', { concurrency: false }, () => {
    before(async () => {
      for (const { prepare } of outages) await prepare?.(worldOf());
      await worldOf().loseEngine();
    });
    after(async () => {
      await worldOf().regainEngine();
      for (const { leave } of outages) await leave?.(worldOf());
    });
    for (const outage of outages) runPhase({ ...outage, leave: undefined }, worldOf);
  });
}

function runPhase({ title, enter, leave, outcomes }: Phase, worldOf: () => World): void {
  describe(title, { concurrency: false }, () => {
    before(() => enter?.(worldOf()));
    after(() => leave?.(worldOf()));
    for (const outcome of outcomes) declare(outcome, worldOf);
  });
}

function declare(outcome: Outcome, worldOf: () => World): void {
  const operation: RestOperation = REST_OPERATIONS[outcome.operation];
  const expected =
    outcome.outcome === 'ok' ? operation.status : `${ERROR_STATUS[outcome.outcome]} ${outcome.outcome}`;
  for (const { path, audience } of pathsOf(operation)) {
    const way: Way = audience === 'key' ? 'key' : 'user';
    if (outcome.only !== undefined && outcome.only !== way) continue;
    test(`${operation.method} /v1${path} → ${expected}`, async () => {
      const world = worldOf();
      const call = world.caller(way);
      if (outcome.outcome === 'ok') return await succeed(outcome, world, way);
      const { status, body } = await outcome.run(call, world, way);
      assert.equal(`${status} ${body.error?.code}`, expected, JSON.stringify(body));
      assert.deepEqual(Object.keys(body), ['error']);
      assert.deepEqual(Object.keys(body.error), ['code', 'message', 'details']);
      return undefined;
    });
  }
}

async function succeed({ operation, run }: Outcome, world: World, way: Way): Promise<void> {
  const suspicious = new Suspicious(world, way, operation);
  const { status, headers, body } = await run(suspicious.call, world, way);
  assert.equal(status, REST_OPERATIONS[operation].status, JSON.stringify(body));
  assert.ok(headers.get('x-request-id'));
  assert.equal(problemOfOutput(operation, body), undefined, JSON.stringify(body));
  assert.ok(suspicious.wasAsked, `${operation} was never called`);
}

/**
 * Sends requests. For the first request of the operation in question it also checks two things: before it, the same request is refused
 * without a credential and with that of another organization; after it, a repetition with the same `Idempotency-Key` changes nothing.
 */
class Suspicious {
  readonly #world: World;
  readonly #way: Way;
  readonly #operation: RestOperationName;
  wasAsked = false;

  constructor(world: World, way: Way, operation: RestOperationName) {
    this.#world = world;
    this.#way = way;
    this.#operation = operation;
  }

  get call(): Call {
    return async (operation, parts = {}) => {
      const call = this.#world.caller(this.#way);
      if (operation !== this.#operation || this.wasAsked) return await call(operation, parts);
      this.wasAsked = true;
      const { audience }: RestOperation = REST_OPERATIONS[operation];
      // A sign-in has no credential, and so no account to store the answer for.
      if (audience === 'anyone') return await call(operation, parts);
      await this.#refuseOthers(parts);
      if (REST_OPERATIONS[operation].method === 'GET') return await call(operation, parts);
      return await this.#twice(parts);
    };
  }

  async #refuseOthers(parts: Parts): Promise<void> {
    const call = this.#world.caller(this.#way);
    const spec: RestOperation = REST_OPERATIONS[this.#operation];
    const anonymous = await call(this.#operation, { ...parts, as: null });
    assert.equal(anonymous.status, 401, 'without a credential');
    const { path, audience } = addressOf(spec, this.#way);
    if (!path.includes('{')) return;
    const credential = this.#world.credentialOf(audience, this.#world.otherTenant);
    const refused = await call(this.#operation, { ...parts, as: credential });
    const expected = path.includes('{slug}') || path.includes('{token}') ? 403 : 404;
    assert.equal(refused.status, expected, `another organization: ${JSON.stringify(refused.body)}`);
  }

  async #twice(parts: Parts): Promise<Reply> {
    const call = this.#world.caller(this.#way);
    const headers = { ...parts.headers, 'idempotency-key': randomUUID() };
    const first = await call(this.#operation, { ...parts, headers });
    if (first.status >= 300 || LAST_WORDS.has(this.#operation)) return first;
    const again = await call(this.#operation, { ...parts, headers });
    if (REST_OPERATIONS[this.#operation].output === EVENT_STREAM) {
      assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [first.status, 'true']);
      return first;
    }
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [first.status, 'true']);
    const { secretField }: RestOperation = REST_OPERATIONS[this.#operation];
    const shown = secretField === undefined ? first.body : { ...first.body, [secretField]: null };
    assert.deepEqual(Object.keys(again.body), Object.keys(shown));
    if (secretField !== undefined) assert.equal(again.body[secretField], null);
    await this.#refuseForSomethingElse(parts, headers);
    return first;
  }

  /** The key is taken for what it was first used for. */
  async #refuseForSomethingElse(parts: Parts, headers: Readonly<Record<string, string>>): Promise<void> {
    const { path } = addressOf(REST_OPERATIONS[this.#operation], this.#way);
    const isOwn = KEYS_OF_CALLER.has(this.#operation);
    const isAboutOneself = this.#way === 'user' && (isOwn || !path.includes('{slug}'));
    const other: RestOperationName = isAboutOneself ? 'users.update' : 'volumes.create';
    const body = isAboutOneself ? { display_name: 'Other' } : { name: 'other' };
    const { status, body: answer } = await this.#world.caller(this.#way)(other, {
      body,
      headers: { 'idempotency-key': headers['idempotency-key'] ?? '' },
      ...(parts.as === undefined ? {} : { as: parts.as }),
      ...(parts.params?.['slug'] === undefined ? {} : { params: parts.params }),
    });
    assert.deepEqual([status, answer.error?.code], [409, 'idempotency_conflict']);
  }
}
