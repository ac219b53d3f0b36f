import assert from 'node:assert/strict';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { isTimestamp, isUuid } from './shapes.ts';

const SIZE = { vcpus: 1, memory_mib: 64, disk_size_mib: 128 };

/** A run that is over, and its rows. */
async function usedBox(
  ground: Ground,
): Promise<{ readonly box: Json; readonly rows: Json; readonly seconds: number; readonly sandboxes: Json }> {
  return await ground.shared('used', async () => {
    const box = await ground.stop((await ground.running({ resources: SIZE })).id);
    const to = new Date(Date.parse(box.stopped_at) + 1000).toISOString();
    const { body } = await ground.rest('GET', `/billing/usage/sandbox?from=${box.started_at}&to=${to}`);
    const rows = body.rows.filter(({ sandbox_id: id }: Json) => id === box.id);
    const seconds = (Date.parse(box.stopped_at) - Date.parse(box.started_at)) / 1000;
    return { box, rows, seconds, sandboxes: body.sandboxes };
  });
}

async function isTimesSize(ground: Ground, field: string, size: number): Promise<void> {
  const { rows, seconds } = await usedBox(ground);
  const total = rows.reduce((sum: number, row: Json) => sum + row[field], 0);
  assert.ok(
    seconds > 0 && Math.abs(total - seconds * size) < 0.01 * size,
    `${total} of ${seconds} s times ${size}`,
  );
}

export const usageClaims: readonly Claim[] = [
  claimOnce('usage.rows.sandbox_id', 'The sandbox that was used', 'the one that ran', async (ground) => {
    const { box, rows } = await usedBox(ground);
    assert.ok(rows.length > 0);
    for (const row of rows) assert.equal(row.sandbox_id, box.id);
  }),
  claimOnce(
    'usage.rows.day',
    'Midnight in UTC of the day; one row for each sandbox and day',
    'the day of the run',
    async (ground) => {
      const { box, rows } = await usedBox(ground);
      isTimestamp(rows[0].day);
      assert.equal(rows[0].day.slice(0, 19), `${box.started_at.slice(0, 10)}T00:00:00`);
      assert.equal(new Set(rows.map(({ day }: Json) => day)).size, rows.length);
    },
  ),
  claim(
    'usage.rows.vcpu_seconds',
    'Seconds that it ran, times its CPUs',
    'the length of a run that is over',
    (ground) => isTimesSize(ground, 'vcpu_seconds', SIZE.vcpus),
  ),
  claim(
    'usage.rows.mem_mib_seconds',
    'Seconds that it ran, times its MiB of memory',
    'the length of a run that is over',
    (ground) => isTimesSize(ground, 'mem_mib_seconds', SIZE.memory_mib),
  ),
  claim(
    'usage.rows.disk_mib_seconds',
    'Seconds that it ran, times the MiB of its disk',
    'the length of a run that is over',
    (ground) => isTimesSize(ground, 'disk_mib_seconds', SIZE.disk_size_mib),
  ),
  claimOnce(
    'usage.sandboxes.id',
    'A sandbox that a row names',
    'it is there, also after the sandbox was deleted',
    async (ground) => {
      const box = await ground.stop((await ground.running()).id);
      await ground.remove(box.id);
      const { body } = await ground.rest('GET', '/billing/usage/sandbox');
      const entry = body.sandboxes.find(({ id }: Json) => id === box.id);
      isUuid(entry.id);
    },
  ),
  claimOnce('usage.sandboxes.name', 'Its name', 'that of the record', async (ground) => {
    const { box, sandboxes } = await usedBox(ground);
    assert.equal(sandboxes.find(({ id }: Json) => id === box.id).name, box.name);
  }),
  claimOnce('usage.sandboxes.slug', 'Its slug', 'that of the record', async (ground) => {
    const { box, sandboxes } = await usedBox(ground);
    assert.equal(sandboxes.find(({ id }: Json) => id === box.id).slug, box.slug);
  }),
  claimOnce(
    'query.from',
    'Where the time that is counted begins; the start of the month unless given',
    'a window after the run has no row of it',
    async (ground) => {
      const { box } = await usedBox(ground);
      const from = new Date(Date.parse(box.stopped_at) + 1).toISOString();
      const { body } = await ground.rest('GET', `/billing/usage/sandbox?from=${from}`);
      assert.ok(!body.rows.some(({ sandbox_id: id }: Json) => id === box.id));
    },
  ),
  claimOnce(
    'query.to',
    'Where it ends; now unless given',
    'a window before the run has no row of it; one that ends before it begins is refused',
    async (ground) => {
      const { box } = await usedBox(ground);
      const window = (from: string, to: string) =>
        ground.rest('GET', `/billing/usage/sandbox?from=${from}&to=${to}`);
      const before = new Date(Date.parse(box.started_at) - 1000).toISOString();
      const { body } = await window(before, box.started_at);
      assert.ok(!body.rows.some(({ sandbox_id: id }: Json) => id === box.id));
      assert.equal((await window(box.stopped_at, before)).status, 400);
    },
  ),
];
