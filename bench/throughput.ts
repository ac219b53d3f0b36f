import { spawn } from 'node:child_process';
import type { ChannelClient } from '@svc/contract';
import { startSandbox } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { openChannel, withEngine } from './first-output.ts';
import { countBytes, ddArgs, mibPerSecond, zeros } from './measure.ts';

const MIB = 1024 * 1024;
const CHUNK = new Uint8Array(256 * 1024);

/** Throughput of engine and client, compared with a plain pipe. */
export const throughput: Benchmark = {
  name: 'throughput',
  description: '1 GiB of stdout (gVisor: 256 MiB), and a quarter of it of stdin and of files each way',
  promise: 'container ≥ 600 MiB/s of stdout',
  run: (context) =>
    withEngine([], async (engine) => [
      ...(await measure(engine, 'container', context)),
      ...(await measure(engine, 'gvisor', context)),
    ]),
};

const OUTPUT_MIB = { container: 1024, gvisor: 256 };

async function measure(
  engine: TestEngine,
  name: 'container' | 'gvisor',
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const outputMib = isQuick ? 8 : OUTPUT_MIB[name];
  const inputMib = outputMib / 4;
  const sandbox = await startSandbox(engine, name);
  const channel = await openChannel(engine, sandbox.id);
  const values = await interleave(
    isQuick ? 1 : 5,
    {
      stdout: () => mibPerSecond(outputMib, () => readStdout(channel, outputMib)),
      pipe: () => mibPerSecond(outputMib, () => readPipe(outputMib)),
      stdin: () => mibPerSecond(inputMib, () => writeStdin(channel, inputMib)),
      fileWrite: () => mibPerSecond(inputMib, () => writeFile(channel, inputMib)),
      fileRead: () => mibPerSecond(inputMib, () => readFile(channel, inputMib)),
    },
    signal,
  );
  channel.close();
  await sandbox.remove();
  const target = name === 'container' ? { target: { atLeast: 600 } } : {};
  return [
    { what: `${name}, stdout`, unit: 'MiB/s', values: values.stdout, ...target },
    { what: 'the same program, read from a pipe', unit: 'MiB/s', values: values.pipe },
    ratio(`pipe / ${name}, stdout`, values.pipe, values.stdout),
    { what: `${name}, stdin`, unit: 'MiB/s', values: values.stdin },
    { what: `${name}, file written`, unit: 'MiB/s', values: values.fileWrite },
    { what: `${name}, file read`, unit: 'MiB/s', values: values.fileRead },
  ];
}

async function readStdout(channel: ChannelClient, mib: number): Promise<number> {
  const process = await channel.exec({ cmd: '/bin/dd', args: ddArgs(mib) });
  process.stderr.discard();
  const bytes = await countBytes(process.stdout);
  await process.exited;
  return bytes;
}

async function readPipe(mib: number): Promise<number> {
  const child = spawn('/bin/busybox', ['dd', ...ddArgs(mib)], { stdio: ['ignore', 'pipe', 'ignore'] });
  return await countBytes(child.stdout);
}

async function writeStdin(channel: ChannelClient, mib: number): Promise<number> {
  const drain = { cmd: '/bin/dd', args: ['of=/dev/null', 'bs=64k', 'iflag=fullblock'] };
  const { stderr } = await channel.run(drain, { input: zeros(mib, CHUNK) });
  const blocks = /^(\d+)\+0 records in/.exec(Buffer.from(stderr).toString('utf8'))?.[1];
  return Number(blocks) * 64 * 1024;
}

async function writeFile(channel: ChannelClient, mib: number): Promise<number> {
  await channel.files.writeFile('/tmp/bench', zeros(mib, CHUNK));
  return (await channel.files.stat('/tmp/bench')).size;
}

async function readFile(channel: ChannelClient, mib: number): Promise<number> {
  const bytes = await countBytes(channel.files.readStream('/tmp/bench'));
  if (bytes !== mib * MIB) throw new Error('the file is not what was written');
  return bytes;
}
