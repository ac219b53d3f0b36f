import assert from 'node:assert/strict';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { plainBox } from './record.ts';
import { isTimestamp } from './shapes.ts';

const ACTIONS = ['stop', 'restart'] as const;

/** What proofs need that was made while the engine was there. */
export async function prepareOutage(ground: Ground): Promise<void> {
  await plainBox(ground);
  for (const action of ACTIONS) await boxFor(ground, action);
}

async function boxFor(ground: Ground, action: (typeof ACTIONS)[number]): Promise<Json> {
  return await ground.shared(`outage-${action}`, () => ground.running());
}

async function choose(ground: Ground, id: string, action: string): Promise<Json> {
  await ground.until(id, 'recovery_decision_required');
  const { status, body } = await ground.rest('POST', `/sandboxes/${id}/recover`, { body: { action } });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export const outageClaims: readonly Claim[] = [
  claim(
    'sandbox.temporarily_unavailable_since',
    'Since when the host of the sandbox has been out of reach',
    'a time after the engine was killed; null while it was there',
    async (ground) => {
      const box = await plainBox(ground);
      assert.equal(box.temporarily_unavailable_since, null);
      const away = await ground.until(box.id, 'recovery_decision_required');
      isTimestamp(away.temporarily_unavailable_since);
      assert.ok(away.temporarily_unavailable_since >= box.started_at);
    },
    { phase: 'outage' },
  ),
  claim(
    'sandbox.automatic_recovery_ends_at',
    'When a caller has to choose how it goes on',
    'a second, which is the `--recovery-time`, after it was found to be away',
    async (ground) => {
      const { id } = await plainBox(ground);
      const away = await ground.until(id, 'recovery_decision_required');
      isTimestamp(away.automatic_recovery_ends_at);
      const wait =
        Date.parse(away.automatic_recovery_ends_at) - Date.parse(away.temporarily_unavailable_since);
      assert.equal(wait, 1000);
    },
    { phase: 'outage' },
  ),
  claim(
    'sandbox.status=recovery_decision_required',
    'Its host has been out of reach for too long, and a caller has to choose',
    'it is reached by waiting after the engine was killed',
    async (ground) => {
      const { id } = await plainBox(ground);
      assert.equal((await ground.until(id, 'recovery_decision_required')).id, id);
    },
    { phase: 'outage' },
  ),
  claim(
    'sandbox.status=temporarily_unavailable',
    'Its host is out of reach and waited for',
    'the answer to a choice to wait after the engine was killed',
    async (ground) => {
      const { status, automatic_recovery_ends_at: end } = await choose(
        ground,
        (await plainBox(ground)).id,
        'wait',
      );
      assert.equal(status, 'temporarily_unavailable');
      isTimestamp(end);
    },
    { phase: 'outage' },
  ),
  claim(
    'transition.recover.stop',
    'After an outage the choice `stop` ends the sandbox',
    'the answer is `stopping`',
    async (ground) => {
      const { status } = await choose(ground, (await boxFor(ground, 'stop')).id, 'stop');
      assert.equal(status, 'stopping');
    },
    { phase: 'outage' },
  ),
  claim(
    'transition.recover.restart',
    'After an outage the choice `restart` begins a new run on the same disk',
    'the answer is `starting`',
    async (ground) => {
      const { status } = await choose(ground, (await boxFor(ground, 'restart')).id, 'restart');
      assert.equal(status, 'starting');
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'error.orchestrator_unreachable',
    'The engine does not answer',
    'a stop and a delete while the engine is killed',
    async (ground) => {
      const { name, id } = await plainBox(ground);
      for (const [method, path] of [
        ['DELETE', `/sandboxes/by-name/${name}`],
        ['POST', `/sandboxes/${id}/stop`],
      ] as const) {
        const { status, body } = await ground.rest(method, path);
        assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable'], path);
      }
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'message.orchestrator-unreachable',
    'Says that the orchestrator cannot be reached',
    'the message of a stop while the engine is killed begins so',
    async (ground) => {
      const { body } = await ground.rest('POST', `/sandboxes/${(await plainBox(ground)).id}/stop`);
      assert.match(body.error.message, /^orchestrator unreachable/i);
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'endpoint.volume-content.502',
    'A file cannot be written while the engine is away',
    '502 `orchestrator_unreachable`',
    async (ground) => {
      const { body } = await ground.rest('GET', '/volumes');
      const headers = { 'x-svc-file-path': Buffer.from('x').toString('base64url') };
      const { status, body: answer } = await ground.rest('PUT', `/volumes/${body[0].id}/files/content`, {
        headers,
        body: Buffer.from('x'),
      });
      assert.deepEqual([status, answer.error.code], [502, 'orchestrator_unreachable']);
      assert.equal(answer.error.message, 'orchestrator unreachable');
    },
    { phase: 'outage' },
  ),
  claimOnce(
    'endpoint.health.503',
    'Health is 503 with the reason when no sandbox can run',
    'GET /api/v1/health while the engine is killed',
    async (ground) => {
      const response = await fetch(`${ground.server.url}/api/v1/health`);
      assert.equal(response.status, 503);
      assert.match(((await response.json()) as Json).message, /^Service cannot run sandboxes: /);
    },
    { phase: 'outage' },
  ),
  claim(
    'transition.recovered',
    'A sandbox that was waited for goes on where it was once its host is back',
    'the same start time, and a command runs',
    async (ground) => {
      const box = await plainBox(ground);
      const isBack = async () => {
        const { status } = await ground.get(box.id);
        if (status === 'recovery_decision_required') await choose(ground, box.id, 'wait');
        return status === 'running';
      };
      await ground.wait(isBack, 'waiting was enough');
      assert.equal((await ground.get(box.id)).started_at, box.started_at);
      assert.equal(await ground.seen(box, 'echo again'), 'again');
    },
    { phase: 'return' },
  ),
  claim(
    'transition.recovered.choices',
    'What was chosen during an outage happens once the host is back',
    'one is stopped, the other runs with a later start time',
    async (ground) => {
      await ground.until((await boxFor(ground, 'stop')).id, 'stopped');
      const box = await boxFor(ground, 'restart');
      assert.ok((await ground.until(box.id, 'running')).started_at > box.started_at);
    },
    { phase: 'return' },
  ),
];
