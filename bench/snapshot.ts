import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';

const ROUNDS = 20;
const FILE_MIB = 256;

/** The time of a snapshot of a sandbox, compared with a plain copy of its disk. */
export const snapshot: Benchmark = {
  name: 'snapshot',
  description:
    'snapshot of a running and of a stopped sandbox through the SDK, disk of 4 GiB, and cp of the same disk',
  promise: 'of a disk that is as it came ≤ 300 ms (p50)',
  async run(context) {
    const server = await TestServer.start({ args: [], engineArgs: [] });
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      const client = new Client({ apiUrl: server.url, apiKey: key });
      return await measure(client, server.engine.folder, context);
    } finally {
      await server.destroy();
    }
  },
};

async function measure(
  client: Client,
  folder: string,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const disks = join(folder, 'rootfs/disks');
  const make = async (name: string, isolation: 'container' | 'gvisor') => {
    const known = new Set(readdirSync(disks));
    const sandbox = await Sandbox.create({ client, name, image: BUSYBOX, isolation, diskMib: 4096 });
    return { sandbox, disk: join(disks, readdirSync(disks).find((name) => !known.has(name)) ?? '') };
  };
  const container = await make('running', 'container');
  const gvisor = await make('gvisor', 'gvisor');
  const stopped = await make('stopped', 'container');
  await stopped.sandbox.stop();
  const full = await make('full', 'container');
  await full.sandbox.exec('/bin/dd', ['if=/dev/urandom', 'of=/big', 'bs=1M', `count=${FILE_MIB}`]);
  note('snapshots');
  const values = await interleave(
    isQuick ? 1 : ROUNDS,
    {
      container: () => takeSnapshot(client, container.sandbox),
      gvisor: () => takeSnapshot(client, gvisor.sandbox),
      stopped: () => takeSnapshot(client, stopped.sandbox),
      copy: () => copyDisk(container.disk),
      full: () => takeSnapshot(client, full.sandbox),
      fullCopy: () => copyDisk(full.disk),
    },
    signal,
  );
  return [
    { what: 'running, container', unit: 'ms', values: values.container, target: { atMost: 300 } },
    { what: 'running, gVisor', unit: 'ms', values: values.gvisor, target: { atMost: 300 } },
    { what: 'stopped', unit: 'ms', values: values.stopped, target: { atMost: 300 } },
    { what: 'cp --sparse of the same disk', unit: 'ms', values: values.copy },
    ratio('running container / cp', values.container, values.copy),
    { what: `running, ${FILE_MIB} MiB written`, unit: 'ms', values: values.full },
    { what: 'cp --sparse of that disk', unit: 'ms', values: values.fullCopy },
    ratio(`with ${FILE_MIB} MiB / cp`, values.full, values.fullCopy),
  ];
}

async function takeSnapshot(client: Client, sandbox: Sandbox): Promise<number> {
  const took = await timed(() => sandbox.snapshot('bench'));
  await client.call('snapshots.removeByName', { params: { name: 'bench' } });
  return took;
}

/** Onto the host's disk, as a snapshot is. */
async function copyDisk(disk: string): Promise<number> {
  const copy = `${disk}.bench`;
  try {
    return await timed(async () => {
      // SAFETY: no shell; both paths are those of a folder of our own.
      execFileSync('cp', ['--sparse=always', '--', disk, copy]);
      execFileSync('sync', [copy]);
    });
  } finally {
    rmSync(copy, { force: true });
  }
}
