import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { PlatformError, type ErrorCode } from '@svc/contract/errors';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import type { ImageProgress, Images, ImportSource, ResolveOptions } from './images.ts';

/** What the suite needs around an adapter. Everything is removed by `t.after`. */
export interface ImagesHarness {
  readonly images: Images;
  /** A reference in the harness's registry. */
  readonly reference: (name: string) => string;
  /** Makes content available there and returns its digest. Other content, other image. */
  readonly publish: (name: string, content: string) => Promise<string>;
  readonly setReachable: (isReachable: boolean) => void;
  /** The credentials that the registry requires; null: none. */
  readonly setAuth: (auth: RegistryAuth | null) => void;
  /** Pulls stay under way until the returned function is called. */
  readonly holdPulls: () => () => void;
  /** How often content was fetched. */
  readonly pullCount: () => number;
  /** The set of image ids that count as in use; with `scope id`, also by that scope. */
  readonly inUse: Set<string>;
  readonly source: (content: string) => Promise<ImportSource>;
}

/** The meaning of the port: every adapter runs it, and so does the fake. */
export function imagesSuite(title: string, make: (t: TestContext) => Promise<ImagesHarness>): void {
  suite(title, () => {
    resolving(make);
    sharing(make);
    keeping(make);
    keepingPrivate(make);
    holding(make);
  });
}

type Make = (t: TestContext) => Promise<ImagesHarness>;

function resolving(make: Make): void {
  test('an image is pulled when it is missing, and from then on it is there without the registry', async (t) => {
    const harness = await make(t);
    const digest = await harness.publish('app', 'one');
    const first = await resolve(harness, 'app');
    assert.equal(first.digest, digest);
    harness.setReachable(false);
    assert.deepEqual(await resolve(harness, 'app'), first);
    assert.equal(harness.pullCount(), 1);
  });

  test('"always" follows the registry and is never silently stale', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    const first = await resolve(harness, 'app');
    await harness.publish('app', 'two');
    assert.equal((await resolve(harness, 'app')).id, first.id, 'if_missing stays with what it has');
    const second = await resolve(harness, 'app', { pullPolicy: 'always' });
    assert.notEqual(second.id, first.id);
    harness.setReachable(false);
    await rejects('image_pull_failed', resolve(harness, 'app', { pullPolicy: 'always' }));
  });

  test('"never" does not ask the registry and says what to type', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    const error = await rejects('image_not_found', resolve(harness, 'app', { pullPolicy: 'never' }));
    assert.match(error.message, /svc image pull/);
    assert.equal(harness.pullCount(), 0);
  });

  test('a pinned reference is that content or an error', async (t) => {
    const harness = await make(t);
    const digest = await harness.publish('app', 'one');
    await harness.publish('app', 'two');
    const pinned = `${harness.reference('app').replace(/:[^:/]*$/, '')}@${digest}`;
    const image = await harness.images.resolve(pinned, options());
    assert.equal(image.digest, digest);
    const unknown = pinned.replace(/[0-9a-f]{64}$/, 'a'.repeat(64));
    await rejects('image_not_found', harness.images.resolve(unknown, options()));
  });

  test('a reference that is none is refused before anything happens', async (t) => {
    const { images } = await make(t);
    for (const wrong of ['', 'Upper', 'a b', 'https://x/y', 'x:', 'x@sha256:12']) {
      await rejects('invalid_image', images.resolve(wrong, options()));
    }
  });

  test('a pull of a missing image fails as not found and leaves nothing', async (t) => {
    const harness = await make(t);
    await rejects('image_not_found', resolve(harness, 'missing'));
    assert.deepEqual(await harness.images.list(), []);
  });
}

function sharing(make: Make): void {
  test('concurrent calls for one reference pull once, and each hears of the progress', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    const release = harness.holdPulls();
    const heard: ImageProgress[][] = [[], [], []];
    const calls = heard.map((events) =>
      resolve(harness, 'app', { onProgress: (event) => events.push(event) }),
    );
    release();
    const ids = new Set((await Promise.all(calls)).map(({ id }) => id));
    assert.equal(ids.size, 1);
    assert.equal(harness.pullCount(), 1);
    for (const events of heard) {
      assert.equal(events.at(0)?.step, 'resolving');
      assert.ok(events.some(({ step }) => step === 'downloading'));
      assert.equal(events.at(-1)?.step, 'done');
    }
  });

  test('a caller that aborts leaves the others alone', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    const release = harness.holdPulls();
    const abort = new AbortController();
    const leaving = resolve(harness, 'app', { signal: abort.signal });
    const staying = resolve(harness, 'app');
    abort.abort(new Error('changed my mind'));
    await assert.rejects(leaving, /changed my mind/);
    release();
    assert.equal((await staying).references.length, 1);
  });

  test('a pull stops with its last caller and leaves nothing', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    const release = harness.holdPulls();
    const abort = new AbortController();
    const started = Promise.withResolvers<void>();
    const onProgress = ({ step }: ImageProgress) => step === 'downloading' && started.resolve();
    const only = resolve(harness, 'app', { signal: abort.signal, onProgress });
    await started.promise;
    abort.abort(new Error('changed my mind'));
    await assert.rejects(only, /changed my mind/);
    release();
    assert.deepEqual(await harness.images.list(), []);
    assert.equal((await resolve(harness, 'app')).references.length, 1, 'and can be had again');
  });
}

function keeping(make: Make): void {
  test('an import is found by its name and by its id', async (t) => {
    const harness = await make(t);
    const image = await harness.images.import(await harness.source('one'), 'svc/mine', options());
    assert.deepEqual(image.references, ['svc/mine:latest']);
    assert.deepEqual(await harness.images.get('svc/mine'), image);
    assert.deepEqual(await harness.images.get(image.id), image);
    assert.deepEqual(await harness.images.list(), [image]);
    assert.equal(await harness.images.get('svc/other'), undefined);
  });

  test('a name moves to the newer image; the older stays until it is pruned', async (t) => {
    const { images, source, inUse } = await make(t);
    const first = await images.import(await source('one'), 'svc/mine', options());
    const second = await images.import(await source('two'), 'svc/mine', options());
    assert.equal((await images.get('svc/mine'))?.id, second.id);
    assert.deepEqual((await images.get(first.id))?.references, []);
    inUse.add(second.id);
    const pruned = await images.prune();
    assert.deepEqual(pruned.images, [first.id]);
    assert.ok(pruned.freedBytes > 0);
    assert.deepEqual(
      (await images.list()).map(({ id }) => id),
      [second.id],
    );
  });

  test('an image goes with its last name, unless a sandbox uses it', async (t) => {
    const { images, source, inUse } = await make(t);
    const origin = await source('one');
    const { id } = await images.import(origin, 'svc/one', options());
    assert.equal((await images.import(origin, 'svc/two', options())).id, id);
    inUse.add(id);
    await images.remove('svc/one');
    await rejects('image_in_use', images.remove('svc/two'));
    await rejects('image_in_use', images.remove(id));
    inUse.delete(id);
    await images.remove('svc/two');
    assert.deepEqual(await images.list(), []);
    await rejects('image_not_found', images.remove('svc/two'));
  });

  test('recover may be repeated and changes nothing', async (t) => {
    const { images, source } = await make(t);
    await images.recover();
    const image = await images.import(await source('one'), 'svc/mine', options());
    await images.recover();
    await images.recover();
    assert.deepEqual(await images.list(), [image]);
  });
}

const ALICE: RegistryAuth = { username: 'alice', password: 'correct horse' };

function keepingPrivate(make: Make): void {
  test('an image that was pulled with credentials is open to its scope, and to others with credentials of their own', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    harness.setAuth(ALICE);
    const mine = await resolve(harness, 'app', { auth: ALICE, scope: 'mine' });
    assert.deepEqual(mine.scopes, ['mine']);
    for (const scope of ['other', null]) {
      await rejects('image_pull_failed', resolve(harness, 'app', { scope }));
      await rejects('image_not_found', resolve(harness, 'app', { scope, pullPolicy: 'never' }));
      const auth = { ...ALICE, password: 'wrong horse' };
      await rejects('image_pull_failed', resolve(harness, 'app', { scope, auth }));
    }
    const other = await resolve(harness, 'app', { auth: ALICE, scope: 'other' });
    assert.deepEqual(other, { ...mine, scopes: ['mine', 'other'] });
    harness.setReachable(false);
    for (const scope of ['mine', 'other']) {
      assert.equal((await resolve(harness, 'app', { scope })).id, mine.id);
      assert.equal((await resolve(harness, 'app', { scope, pullPolicy: 'never' })).id, mine.id);
    }
    await rejects('image_pull_failed', resolve(harness, 'app'));
  });

  test("an anonymous pull that succeeds makes an image everybody's, and later credentials do not take it back", async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    await resolve(harness, 'app', { auth: ALICE, scope: 'mine' });
    assert.equal((await resolve(harness, 'app', { scope: 'other' })).scopes, null);
    await resolve(harness, 'app', { auth: ALICE, scope: 'mine', pullPolicy: 'always' });
    harness.setReachable(false);
    assert.equal((await resolve(harness, 'app', { scope: 'third' })).scopes, null);
  });

  test('a private image is private by its digest and its id too, and under each of its names', async (t) => {
    const harness = await make(t);
    const digest = await harness.publish('app', 'one');
    await harness.publish('copy', 'one');
    harness.setAuth(ALICE);
    const { id } = await resolve(harness, 'app', { auth: ALICE, scope: 'mine' });
    const pinned = `${harness.reference('app').replace(/:[^:/]*$/, '')}@${digest}`;
    await rejects('image_pull_failed', harness.images.resolve(pinned, options({ scope: 'other' })));
    await rejects('image_not_found', harness.images.resolve(id, options({ scope: 'other' })));
    assert.equal(
      (await harness.images.resolve(pinned, options({ scope: 'mine', pullPolicy: 'never' }))).id,
      id,
    );
    assert.equal((await harness.images.resolve(id, options({ scope: 'mine' }))).id, id);
    assert.equal((await resolve(harness, 'copy', { auth: ALICE, scope: 'other' })).id, id);
    await rejects('image_pull_failed', resolve(harness, 'app', { scope: 'other' }));
    assert.equal((await harness.images.resolve(id, options({ scope: 'other' }))).id, id);
  });

  test('access to older content of a name gives no access to newer content', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    harness.setAuth(ALICE);
    await resolve(harness, 'app', { auth: ALICE, scope: 'mine' });
    await resolve(harness, 'app', { auth: ALICE, scope: 'other' });
    await harness.publish('app', 'two');
    const newer = await resolve(harness, 'app', { auth: ALICE, scope: 'mine', pullPolicy: 'always' });
    assert.deepEqual(newer.scopes, ['mine']);
    await rejects('image_pull_failed', resolve(harness, 'app', { scope: 'other' }));
  });

  test('scopes that pull at the same time are both let in', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    harness.setAuth(ALICE);
    const names = ['one', 'three', 'two'];
    await Promise.all(names.map((scope) => resolve(harness, 'app', { auth: ALICE, scope })));
    assert.deepEqual((await harness.images.get(harness.reference('app')))?.scopes, names);
  });

  test('credentials without a scope serve callers without a scope', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    harness.setAuth(ALICE);
    const { id } = await resolve(harness, 'app', { auth: ALICE });
    assert.equal((await resolve(harness, 'app')).id, id);
    await rejects('image_pull_failed', resolve(harness, 'app', { scope: 'other' }));
  });

  test("an import is everybody's", async (t) => {
    const { images, source } = await make(t);
    const { id } = await images.import(await source('one'), 'svc/mine', options());
    const found = await images.resolve('svc/mine', options({ scope: 'another', pullPolicy: 'never' }));
    assert.deepEqual([found.id, found.scopes], [id, null]);
  });
}

function holding(make: Make): void {
  test('an image counts for every scope that uses it, and a scope gets no more than it may hold', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    await harness.publish('app2', 'two');
    const { images } = harness;
    assert.equal((await images.held('mine')).storedBytes, 0);
    await resolve(harness, 'app', { scope: 'mine' });
    const { storedBytes } = await images.held('mine');
    assert.ok(storedBytes > 0);
    const more = { scope: 'mine', maxHeldBytes: storedBytes };
    await resolve(harness, 'app', more);
    const refusal = await rejects('quota_exceeded', resolve(harness, 'app2', more));
    assert.equal(refusal.details?.['limit'], 'max_image_storage_gib');
    assert.equal(await images.get(harness.reference('app2')), undefined, 'nothing of it is kept');
    await rejects(
      'quota_exceeded',
      resolve(harness, 'app', { scope: 'other', maxHeldBytes: storedBytes - 1 }),
    );
    await resolve(harness, 'app', { scope: 'other', maxHeldBytes: storedBytes });
    assert.equal((await images.held('other')).storedBytes, storedBytes);
  });

  test('concurrent pulls of a scope stay within its limit together', async (t) => {
    const harness = await make(t);
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) await harness.publish(name, `content of ${name}`);
    const { storedBytes } = await resolve(harness, 'a', { scope: 'first' }).then(() =>
      harness.images.held('first'),
    );
    const pulls = names.map((name) =>
      resolve(harness, name, { scope: 'mine', maxHeldBytes: 2 * storedBytes }),
    );
    const outcomes = await Promise.allSettled(pulls);
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 2);
    assert.equal((await harness.images.held('mine')).storedBytes, 2 * storedBytes);
  });

  test('images of the operator count for no scope, are listed for all and cannot be released', async (t) => {
    const { images, source } = await make(t);
    const { id } = await images.import(await source('one'), 'svc/mine', options());
    await images.resolve('svc/mine', options({ scope: 'mine', maxHeldBytes: 0 }));
    const { images: held, storedBytes } = await images.held('mine');
    assert.deepEqual([held.map(({ image, usedAt }) => [image.id, usedAt]), storedBytes], [[[id, null]], 0]);
    await rejects('image_not_found', images.release('svc/mine', 'mine'));
    assert.deepEqual(await images.collect(0), []);
  });

  test('a scope releases an image for itself alone, and not one that its own sandbox uses', async (t) => {
    const harness = await make(t);
    const { images, inUse, reference } = harness;
    await harness.publish('app', 'one');
    const { id } = await resolve(harness, 'app', { scope: 'mine' });
    await resolve(harness, 'app', { scope: 'other' });
    await rejects('image_not_found', images.release(reference('app'), 'stranger'));
    inUse.add(id).add(`mine ${id}`);
    await rejects('image_in_use', images.release(reference('app'), 'mine'));
    await images.release(reference('app'), 'other');
    assert.deepEqual(await images.held('other'), { images: [], storedBytes: 0 });
    assert.equal((await images.held('mine')).images[0]?.isInUse, true);
    inUse.clear();
    await images.release(id, 'mine');
    assert.deepEqual(await images.list(), []);
  });

  test('a scope that released a private image has to authenticate again', async (t) => {
    const harness = await make(t);
    await harness.publish('app', 'one');
    harness.setAuth(ALICE);
    await resolve(harness, 'app', { auth: ALICE, scope: 'mine' });
    await resolve(harness, 'app', { auth: ALICE, scope: 'other' });
    await harness.images.release(harness.reference('app'), 'mine');
    await rejects('image_pull_failed', resolve(harness, 'app', { scope: 'mine' }));
    await resolve(harness, 'app', { scope: 'other', pullPolicy: 'never' });
  });

  test('images that are unused for long are collected; those in use, or used lately, stay', async (t) => {
    const harness = await make(t);
    const { images, inUse } = harness;
    await harness.publish('app', 'one');
    await harness.publish('app2', 'two');
    const { id } = await resolve(harness, 'app', { scope: 'mine' });
    const used = await resolve(harness, 'app2', { scope: 'mine' });
    assert.deepEqual(await images.collect(60_000), []);
    inUse.add(used.id);
    assert.deepEqual(await images.collect(0), [id]);
    assert.deepEqual(
      (await images.list()).map((image) => image.id),
      [used.id],
    );
    assert.deepEqual((await images.held('mine')).images.length, 1);
  });
}

function resolve(harness: ImagesHarness, name: string, changes: Partial<ResolveOptions> = {}) {
  return harness.images.resolve(harness.reference(name), options(changes));
}

function options(changes: Partial<ResolveOptions> = {}): ResolveOptions {
  const defaults = { pullPolicy: 'if_missing', auth: null, scope: null, onProgress: () => {} } as const;
  return { ...defaults, signal: AbortSignal.timeout(100_000), ...changes };
}

async function rejects(code: ErrorCode, promise: Promise<unknown>): Promise<PlatformError> {
  const error = await promise.then(
    () => assert.fail(`expected ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof PlatformError, String(error));
  assert.equal(error.code, code, error.message);
  return error;
}
