import { Sandbox, type Client } from '@svc/sdk';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark, type Measurement } from './suite/benchmark.ts';
import { countBytes, ddArgs, mibPerSecond, timed, zeros } from './suite/measure.ts';
import { SdkServer } from './suite/sdk-server.ts';

const CHUNK = new Uint8Array(1024 * 1024);

/** The time of a process in a running sandbox, of a keystroke, and throughput, all through the SDK. */
export const exec: Benchmark = {
  name: 'exec',
  description: '/bin/true on a held connection, echo of a keystroke, 1 GiB of stdout, files of 256 MiB',
  async run({ isQuick, signal }) {
    await using server = await SdkServer.start();
    await using container = await create(server.client, 'container');
    await using gvisor = await create(server.client, 'gvisor');
    await using terminal = await Terminal.open(container);
    const times = await interleave(
      isQuick ? 2 : 300,
      {
        container: () => timed(() => runTrue(container)),
        gvisor: () => timed(() => runTrue(gvisor)),
        key: () => timed(() => terminal.press()),
      },
      signal,
    );
    const outputMib = isQuick ? 8 : 1024;
    const fileMib = outputMib / 4;
    const rates = await interleave(
      isQuick ? 1 : 5,
      {
        stdout: () => mibPerSecond(outputMib, () => readStdout(container, outputMib)),
        fileWrite: () => mibPerSecond(fileMib, () => writeFile(container, fileMib)),
        fileRead: () => mibPerSecond(fileMib, () => countBytes(container.files.readStream('/bench'))),
      },
      signal,
    );
    return [
      { what: '/bin/true, container', unit: 'ms', values: times.container, promise: 'exec-container' },
      { what: '/bin/true, gVisor', unit: 'ms', values: times.gvisor, promise: 'exec-gvisor' },
      { what: 'echo of a keystroke', unit: 'ms', values: times.key, promise: 'keystroke' },
      { what: 'stdout', unit: 'MiB/s', values: rates.stdout, promise: 'stdout' },
      { what: 'file written', unit: 'MiB/s', values: rates.fileWrite },
      { what: 'file read', unit: 'MiB/s', values: rates.fileRead },
    ] satisfies Measurement[];
  },
};

async function create(client: Client, isolation: 'container' | 'gvisor'): Promise<Sandbox> {
  return await Sandbox.create({ client, image: BUSYBOX, isolation, memoryMib: 1024, diskMib: 2048 });
}

async function runTrue(sandbox: Sandbox): Promise<void> {
  const { code } = await sandbox.exec('/bin/true');
  if (code !== 0) throw new Error(`/bin/true ended with ${code}`);
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

/** A terminal with echo by the kernel, before any program reads the input. */
class Terminal implements AsyncDisposable {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #opened: Awaited<ReturnType<Sandbox['pty']['open']>>;

  private constructor(opened: Awaited<ReturnType<Sandbox['pty']['open']>>) {
    this.#opened = opened;
    this.#chunks = opened.output[Symbol.asyncIterator]();
  }

  static async open(sandbox: Sandbox): Promise<Terminal> {
    return new Terminal(await sandbox.pty.open({ cols: 80, rows: 24, program: 'cat' }));
  }

  /** Resolves with the echo of the key. */
  async press(): Promise<void> {
    await this.#opened.write('x');
    for (;;) {
      const { value, done } = await this.#chunks.next();
      if (done === true) throw new Error('the terminal ended');
      if (Buffer.from(value).includes('x')) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
