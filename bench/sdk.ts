import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { countBytes, ddArgs, mibPerSecond, timed, zeros } from './measure.ts';

const CHUNK = new Uint8Array(1024 * 1024);

/** The overhead of SDK, server and engine, compared with the runtime's own `exec`. */
export const sdk: Benchmark = {
  name: 'sdk',
  description: 'through SDK and server on runc: /bin/true, 1 GiB of stdout, files of 256 MiB',
  promise: '≤ 2 ms on a held connection (p50), ≥ 400 MiB/s of stdout',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    const server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      const client = new Client({ apiUrl: server.url, apiKey: key });
      return await measure(client, bare, context);
    } finally {
      await server.destroy();
    }
  },
};

async function measure(
  client: Client,
  bare: BareRuntimes,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  await using sandbox = await Sandbox.create({ client, image: BUSYBOX, memoryMib: 1024, diskMib: 2048 });
  const idle = await bare.startIdle('runc');
  const exec = await interleave(
    isQuick ? 2 : 50,
    {
      held: () => timed(() => runTrue(sandbox)),
      fresh: () => timed(() => onFreshConnection(client, sandbox.id)),
      bare: () => bare.exec('runc', idle),
    },
    signal,
  );
  const back = await interleave(isQuick ? 2 : 500, { held: () => timed(() => runTrue(sandbox)) }, signal);
  const outputMib = isQuick ? 8 : 1024;
  const fileMib = outputMib / 4;
  const bytes = await interleave(
    isQuick ? 1 : 5,
    {
      stdout: () => mibPerSecond(outputMib, () => readStdout(sandbox, outputMib)),
      bare: () => mibPerSecond(outputMib, () => bare.readStdout('runc', idle, ddArgs(outputMib))),
      fileWrite: () => mibPerSecond(fileMib, () => writeFile(sandbox, fileMib)),
      fileRead: () => mibPerSecond(fileMib, () => countBytes(sandbox.files.readStream('/bench'))),
    },
    signal,
  );
  return [
    { what: 'held connection, one after the other', unit: 'ms', values: back.held, target: { atMost: 2 } },
    { what: 'held connection, beside the floor', unit: 'ms', values: exec.held },
    { what: 'fresh connection, its sandbox looked up', unit: 'ms', values: exec.fresh },
    { what: 'bare runc exec', unit: 'ms', values: exec.bare },
    ratio('held connection / bare runc exec', exec.held, exec.bare),
    { what: 'stdout', unit: 'MiB/s', values: bytes.stdout, target: { atLeast: 400 } },
    { what: 'stdout of bare runc exec', unit: 'MiB/s', values: bytes.bare },
    ratio('bare runc exec / stdout', bytes.bare, bytes.stdout),
    { what: 'file written', unit: 'MiB/s', values: bytes.fileWrite },
    { what: 'file read', unit: 'MiB/s', values: bytes.fileRead },
  ];
}

async function runTrue(sandbox: Sandbox): Promise<void> {
  const { code } = await sandbox.exec('/bin/true');
  if (code !== 0) throw new Error(`/bin/true ended with ${code}`);
}

export async function onFreshConnection(client: Client, id: string): Promise<void> {
  const sandbox = await Sandbox.connect(id, { client });
  await runTrue(sandbox);
  sandbox.close();
}

async function readStdout(sandbox: Sandbox, mib: number): Promise<number> {
  const command = await sandbox.commands.start('/bin/dd', ddArgs(mib), { stderr: 'ignore' });
  const bytes = await countBytes(command.stdout);
  await command.wait();
  return bytes;
}

async function writeFile(sandbox: Sandbox, mib: number): Promise<number> {
  await sandbox.files.write('/bench', zeros(mib, CHUNK));
  return (await sandbox.files.stat('/bench')).sizeBytes;
}
