import { Sandbox, type Client } from '@svc/sdk';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark } from './suite/benchmark.ts';
import { timed } from './suite/measure.ts';
import { SdkServer } from './suite/sdk-server.ts';

const DISK_MIB = 4096;
const WRITTEN_MIB = 256;

/** The time of a snapshot through the SDK. */
export const snapshot: Benchmark = {
  name: 'snapshot',
  description: `snapshot of a running and of a stopped sandbox with a disk of ${DISK_MIB} MiB`,
  async run({ isQuick, signal }) {
    await using server = await SdkServer.start();
    const { client } = server;
    // One without a name is removed when it stops.
    const create = async (name: string, isolation: 'container' | 'gvisor') =>
      await Sandbox.create({ client, name, image: BUSYBOX, isolation, diskMib: DISK_MIB });
    const container = await create('container', 'container');
    const gvisor = await create('gvisor', 'gvisor');
    const stopped = await create('stopped', 'container');
    const written = await create('written', 'container');
    await stopped.stop();
    await written.exec('/bin/dd', ['if=/dev/urandom', 'of=/big', 'bs=1M', `count=${WRITTEN_MIB}`]);
    const values = await interleave(
      isQuick ? 1 : 20,
      {
        container: () => takeSnapshot(client, container),
        gvisor: () => takeSnapshot(client, gvisor),
        stopped: () => takeSnapshot(client, stopped),
        written: () => takeSnapshot(client, written),
      },
      signal,
    );
    return [
      { what: 'running, container', unit: 'ms', values: values.container, promise: 'snapshot-container' },
      { what: 'running, gVisor', unit: 'ms', values: values.gvisor, promise: 'snapshot-gvisor' },
      { what: 'stopped', unit: 'ms', values: values.stopped, promise: 'snapshot-stopped' },
      { what: `running, ${WRITTEN_MIB} MiB written`, unit: 'ms', values: values.written },
    ];
  },
};

async function takeSnapshot(client: Client, sandbox: Sandbox): Promise<number> {
  const took = await timed(() => sandbox.snapshot('bench'));
  await client.call('snapshots.removeByName', { params: { name: 'bench' } });
  return took;
}
