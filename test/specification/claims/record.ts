import assert from 'node:assert/strict';
import { release } from 'node:os';
import { claim, claimOnce, provedBy, type Claim } from '../claim.ts';
import { ORGANIZATION, type Ground, type Json } from '../ground.ts';
import { isTimestamp, isUuid } from './shapes.ts';

/** A sandbox that asks for nothing but its image. */
export async function plainBox(ground: Ground): Promise<Json> {
  const { name, image } = ground.bodyOf();
  const make = async () => {
    const query = '?start=true&wait_for=running&wait_timeout=90';
    const { body } = await ground.rest('POST', `/sandboxes${query}`, { body: { name, image } });
    assert.equal(body.status, 'running', JSON.stringify(body));
    return body;
  };
  return await ground.shared('plain', make);
}

/** One that ran and was stopped. */
async function stoppedBox(ground: Ground): Promise<Json> {
  return await ground.shared('stopped', async () => await ground.stop((await ground.running()).id));
}

/** One whose main process needed more memory than it had. */
export async function failedBox(ground: Ground): Promise<Json> {
  const cmd = ['/bin/sh', '-c', 'sleep 1; exec dd if=/dev/zero of=/dev/null bs=300M count=1'];
  return await ground.shared('failed', async () => {
    const { body } = await ground.create({ runtime: { cmd } }, '?start=true');
    return await ground.until(body.id, 'failed');
  });
}

export const recordClaims: readonly Claim[] = [
  claimOnce(
    'sandbox.id',
    'A UUID by which the sandbox is found',
    'GET by id and by name show the same one',
    async (ground) => {
      const { id, name } = await plainBox(ground);
      isUuid(id);
      assert.equal((await ground.get(id)).name, name);
      assert.equal((await ground.rest('GET', `/sandboxes/by-name/${name}`)).body.id, id);
    },
  ),
  claimOnce(
    'sandbox.org_id',
    'The organization that owns it',
    'the id that `/v1/me/org` shows to the same key',
    async (ground) => {
      const { org_id: owner } = await plainBox(ground);
      isUuid(owner);
      assert.equal((await ground.rest('GET', '/me/org')).body.id, owner);
    },
  ),
  claimOnce(
    'sandbox.name',
    'The name that it was given, unique in its organization',
    'a second create of the name is 409 `name_already_exists`',
    async (ground) => {
      const { name } = await plainBox(ground);
      const again = await ground.create({ name });
      assert.deepEqual([again.status, again.body.error.code], [409, 'name_already_exists']);
    },
  ),
  claimOnce(
    'sandbox.slug',
    'A word for addresses, made up where none was given',
    'its shape, and that two sandboxes have different ones',
    async (ground) => {
      const [one, two] = [await plainBox(ground), (await ground.create()).body];
      for (const { slug } of [one, two]) assert.match(slug, /^[a-z0-9]+(-[a-z0-9]+)*$/);
      assert.notEqual(one.slug, two.slug);
    },
  ),
  claimOnce(
    'sandbox.ephemeral',
    'Whether it is removed when its run ends',
    'one that is asked for says true and is gone after its stop, another says false',
    async (ground) => {
      const box = await ground.running({ lifecycle: { ephemeral: true } });
      assert.deepEqual([box.ephemeral, (await plainBox(ground)).ephemeral], [true, false]);
      assert.equal((await ground.rest('POST', `/sandboxes/${box.id}/stop`)).status, 200);
      await waitForNothing(ground, box.id);
    },
  ),
  provedBy(
    'sandbox.node',
    'The host that it is placed on; null where there is only one',
    'packages/server/src/sandboxes/fleet.test.ts',
    'sandboxes are spread over nodes, and rows, answers, events and capabilities name the node',
  ),
  claim(
    'sandbox.isolation',
    'The class that isolates it',
    'the class of this run; inside, the kernel is that of the host or another',
    async (ground) => {
      const box = await plainBox(ground);
      assert.equal(box.isolation, ground.isolation);
      const isOurKernel = (await ground.seen(box, 'uname -r')) === release();
      assert.equal(isOurKernel, ground.isolation === 'container');
    },
  ),
  provedBy(
    'sandbox.requested',
    'What was asked for, in the shape of `spec`: until the image is known, and while the sandbox is failed',
    'packages/server/src/handlers/sandboxes/sandbox-view.test.ts',
    'the requested spec is shown until the image is known, without values of the image and without secrets',
  ),
  claimOnce(
    'sandbox.created_at',
    'When it was created, RFC 3339 in UTC',
    'between the moments before and after the request',
    async (ground) => {
      const before = Date.now();
      const { body } = await ground.create();
      isTimestamp(body.created_at);
      const at = Date.parse(body.created_at);
      // The database may keep its own clock from going back.
      assert.ok(at >= before - 1000 && at <= Date.now() + 1000, body.created_at);
    },
  ),
  claimOnce(
    'sandbox.started_at',
    'When the latest run started, null before the first',
    'null when created, a time when running, a later one after another start',
    async (ground) => {
      const { body: created } = await ground.create();
      assert.equal(created.started_at, null);
      const start = `/sandboxes/${created.id}/start?wait_for=running&wait_timeout=90`;
      const first = (await ground.rest('POST', start)).body.started_at;
      isTimestamp(first);
      await ground.stop(created.id);
      const second = (await ground.rest('POST', start)).body.started_at;
      assert.ok(second > first, `${second} after ${first}`);
      await ground.remove(created.id);
    },
  ),
  claimOnce(
    'sandbox.stopped_at',
    'When the latest run ended, null while it lasts',
    'null before and during the run, a time not before its start afterwards',
    async (ground) => {
      assert.equal((await ground.create()).body.stopped_at, null);
      assert.equal((await plainBox(ground)).stopped_at, null);
      const { started_at: started, stopped_at: stopped } = await stoppedBox(ground);
      isTimestamp(stopped);
      assert.ok(stopped >= started);
    },
  ),
  provedBy(
    'sandbox.ends_at',
    'When it has run for as long as it may',
    'packages/server/src/handlers/sandboxes/lifecycle.test.ts',
    'how long a sandbox may run is changed in the engine, in its record and in the audit log',
  ),
  claim(
    'sandbox.last_failure_message',
    'Why the latest run failed, in a sentence',
    'a main process that needs too much memory: the sentence says so; null elsewhere',
    async (ground) => {
      assert.equal((await plainBox(ground)).last_failure_message, null);
      const { last_failure_message: message } = await failedBox(ground);
      assert.match(message, /out of memory: more than 64 MiB were needed; raise resources\.memory_mib/);
    },
  ),
];

export const statusClaims: readonly Claim[] = [
  claimOnce(
    'sandbox.status',
    'Where the sandbox is in its life; stop is refused where there is nothing to stop',
    'the value is that of the table below; stop of one that was never started is 409',
    async (ground) => {
      const { body } = await ground.create();
      const stop = await ground.rest('POST', `/sandboxes/${body.id}/stop`);
      assert.deepEqual([stop.status, stop.body.error.code], [409, 'invalid_state_transition']);
      assert.match(stop.body.error.message, /is created; stop is possible when it is/);
    },
  ),
  claimOnce(
    'sandbox.status=created',
    'It was written down and never started',
    'a create without `start`: nothing of it is in the engine',
    async (ground) => {
      const { body } = await ground.create();
      assert.equal(body.status, 'created');
      const known = await ground.server.engine.client.listSandboxes();
      assert.ok(!known.some(({ id }) => id === body.id));
    },
  ),
  claimOnce(
    'sandbox.status=starting',
    'It should run and does not yet',
    'the answer of a create with `start=true` that does not wait',
    async (ground) => {
      const { body } = await ground.create({}, '?start=true');
      assert.equal(body.status, 'starting');
      await ground.until(body.id, 'running');
      await ground.remove(body.id);
    },
  ),
  claim(
    'sandbox.status=running',
    'Commands can be run in it',
    'a command prints what it was told',
    async (ground) => {
      const box = await plainBox(ground);
      assert.equal((await ground.get(box.id)).status, 'running');
      assert.equal(await ground.seen(box, 'echo here'), 'here');
    },
  ),
  claimOnce(
    'sandbox.status=stopping',
    'Its stop was accepted',
    'the answer of the stop operation is the record with this status',
    async (ground) => {
      const box = await ground.running();
      const path = `/orgs/${ORGANIZATION}/sandboxes/${box.id}/stop`;
      const { status, body } = await ground.rest('POST', path, { as: ground.token });
      assert.deepEqual([status, body.id, body.status], [200, box.id, 'stopping']);
      await ground.until(box.id, 'stopped');
    },
  ),
  claim(
    'sandbox.status=stopped',
    'It rests, with its disk',
    'a file that was written before the stop is there after the next start',
    async (ground) => {
      const box = await ground.running();
      await ground.seen(box, 'echo kept > /root/file; sync');
      await ground.stop(box.id);
      const start = `/sandboxes/${box.id}/start?wait_for=running&wait_timeout=90`;
      assert.equal((await ground.rest('POST', start)).body.status, 'running');
      assert.equal(await ground.seen(box, 'cat /root/file'), 'kept');
      await ground.remove(box.id);
    },
  ),
  claim(
    'sandbox.status=failed',
    'Its run ended in a failure, or its start did',
    'a main process that needs too much memory',
    async (ground) => {
      assert.equal((await failedBox(ground)).status, 'failed');
    },
  ),
  claimOnce(
    'sandbox.status_reason',
    'What the scheduler says while the status is starting, null otherwise',
    'it is set in the answer of a start and null when the sandbox runs',
    async (ground) => {
      const { body } = await ground.create({}, '?start=true');
      assert.deepEqual([body.status, body.status_reason], ['starting', 'scheduling']);
      assert.equal((await ground.until(body.id, 'running')).status_reason, null);
      await ground.remove(body.id);
    },
    { covers: ['sandbox.status_reason=scheduling'] },
  ),
  provedBy(
    'sandbox.status_reason=insufficient_capacity',
    'There is no room on the host; the start is tried again',
    'packages/server/src/handlers/sandboxes/rest-sandboxes.test.ts',
    'a host without room is said so while it waits, and the start goes on when there is room',
  ),
];

export const transitionClaims: readonly Claim[] = [
  claim(
    'transition.removed',
    'Delete ends and destroys a sandbox in any state; its name is unknown afterwards',
    'a running, a stopped, a created and a failed one: 404 `sandbox_not_found`, and the engine has nothing of it',
    async (ground) => {
      const running = await ground.running();
      const stopped = await ground.stop((await ground.running()).id);
      const created = (await ground.create()).body;
      const failed = await failedBox(ground);
      for (const { id, name } of [running, stopped, created, failed]) {
        assert.equal((await ground.rest('DELETE', `/sandboxes/by-name/${name}`)).status, 200);
        const { status, body } = await ground.rest('GET', `/sandboxes/by-name/${name}`);
        assert.deepEqual([status, body.error.code], [404, 'sandbox_not_found']);
        await ground.untilEngineForgot(id);
      }
    },
  ),
  claim(
    'transition.stop',
    'Stop ends the run: stopping, then stopped, and no process is left',
    'the status as it goes, and that the engine says it does not run',
    async (ground) => {
      const box = await ground.running();
      assert.equal(
        (await ground.rest('POST', `/sandboxes/by-name/${box.name}/stop`)).body.status,
        'stopping',
      );
      await ground.until(box.id, 'stopped');
      assert.equal((await ground.server.engine.client.getSandbox(box.id)).state, 'stopped');
    },
  ),
];

async function waitForNothing(ground: Ground, id: string): Promise<void> {
  await ground.wait(
    async () => (await ground.rest('GET', `/sandboxes/${id}`)).status === 404,
    `${id} is gone`,
  );
}
