import { availableParallelism } from 'node:os';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { readTree, sumOf } from './process-memory.ts';
import { readTreeCpuMs } from './process-time.ts';

const CALLERS = 2 * availableParallelism();
const MIB = 2 ** 20;

/** How many sandboxes each server creates, uses and removes before it is measured. */
const OLD = 5000;
const YOUNG = 500;

/** CPU time of a server after many sandboxes, compared with one after few. Class container. */
export const age: Benchmark = {
  name: 'age',
  description: `a server that has made, used and removed ${OLD} sandboxes, in turn with one that has made ${YOUNG}`,
  promise: 'a sandbox costs ≤ 1.15 × the processor time; ≤ 32 MiB more memory',
  async run(context) {
    await using servers = new AsyncDisposableStack();
    const [old, young] = [await startServer(servers), await startServer(servers)];
    await old.live(context.isQuick ? 4 : OLD);
    await young.live(context.isQuick ? 4 : YOUNG);
    return await compare(old, young, context);
  },
};

interface AgingServer {
  /** Creates, uses and removes this many sandboxes; resolves with the CPU milliseconds of each, without those of the client. */
  live(count: number): Promise<number>;
  memoryMib(): number;
}

async function startServer(servers: AsyncDisposableStack): Promise<AgingServer> {
  const server = servers.adopt(await TestServer.start({ args: [] }), (started) => started.destroy());
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  const client = new Client({ apiUrl: server.url, apiKey: key });
  const cpuMs = () => readTreeCpuMs(server.pid) + readTreeCpuMs(server.engine.pid);
  const liveOnce = async () => {
    const sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation: 'container' });
    await sandbox.exec('/bin/echo', ['x']);
    await sandbox.remove();
  };
  return {
    live: async (count) => {
      const begun = cpuMs();
      let left = count;
      const call = async () => {
        while (left-- > 0) await liveOnce();
      };
      await Promise.all(Array.from({ length: CALLERS }, call));
      return (cpuMs() - begun) / count;
    },
    memoryMib: () => sumOf([server.pid, server.engine.pid].flatMap(readTree)) / MIB,
  };
}

async function compare(
  old: AgingServer,
  young: AgingServer,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 2 : 150;
  const values = await interleave(
    isQuick ? 1 : 4,
    { old: () => old.live(count), young: () => young.live(count) },
    signal,
  );
  const [memory, memoryOfYoung] = [old.memoryMib(), young.memoryMib()];
  return [
    { what: `processor time of a sandbox after ${OLD} others`, unit: 'ms', values: values.old },
    { what: `the same after ${YOUNG}`, unit: 'ms', values: values.young },
    ratio('the one / the other', values.old, values.young, { atMost: 1.15 }),
    { what: `memory after ${OLD}`, unit: 'MiB', values: [memory] },
    {
      what: 'of it more than the other',
      unit: 'MiB',
      values: [memory - memoryOfYoung],
      target: { atMost: 32 },
    },
  ];
}
