import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';
import { OpenSshServer } from './open-ssh-server.ts';
import { onFreshConnection } from './sdk.ts';

/** Latency of a terminal, compared with OpenSSH on the same host and the runtimes' own `exec`. */
export const terminal: Benchmark = {
  name: 'terminal',
  description:
    'echo of a keystroke, and /bin/true on a fresh connection, beside OpenSSH to localhost and runsc exec',
  promise: 'a keystroke comes back within 1 ms (p50)',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    await using openSsh = await OpenSshServer.start();
    const server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      const client = new Client({ apiUrl: server.url, apiKey: key });
      return await measure({ client, bare, openSsh }, context);
    } finally {
      await server.destroy();
    }
  },
};

interface Parts {
  readonly client: Client;
  readonly bare: BareRuntimes;
  readonly openSsh: OpenSshServer;
}

async function measure(
  { client, bare, openSsh }: Parts,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  await using sandbox = await Sandbox.create({ client, image: BUSYBOX });
  const idle = { runc: await bare.startIdle('runc'), runsc: await bare.startIdle('runsc') };
  await using ours = await ourTerminal(sandbox);
  await using theirs = await sshTerminal(openSsh.place);
  const keys = await interleave(
    isQuick ? 3 : 300,
    { ours: () => ours.press(), theirs: () => theirs.press() },
    signal,
  );
  const fresh = await interleave(
    isQuick ? 1 : 20,
    {
      ours: () => timed(() => onFreshConnection(client, sandbox.id)),
      ssh: () => timed(() => succeed('ssh', [...openSsh.place, 'true'])),
      runc: () => bare.exec('runc', idle.runc),
      runsc: () => bare.exec('runsc', idle.runsc),
    },
    signal,
  );
  return [
    { what: 'echo of a keystroke, SDK terminal', unit: 'ms', values: keys.ours, target: { atMost: 1 } },
    { what: 'echo of a keystroke, OpenSSH to localhost', unit: 'ms', values: keys.theirs },
    ratio('echo: SDK terminal / OpenSSH', keys.ours, keys.theirs),
    { what: '/bin/true, SDK on a fresh connection', unit: 'ms', values: fresh.ours },
    { what: '/bin/true, OpenSSH to localhost', unit: 'ms', values: fresh.ssh },
    { what: '/bin/true, bare runc exec', unit: 'ms', values: fresh.runc },
    { what: '/bin/true, bare runsc exec', unit: 'ms', values: fresh.runsc },
    ratio('/bin/true: SDK / OpenSSH', fresh.ours, fresh.ssh),
  ];
}

/** A terminal with echo by the kernel, before any program reads the input. */
interface Typewriter extends AsyncDisposable {
  /** From the key to its echo. */
  press(): Promise<number>;
}

function typewriter(
  output: AsyncIterable<Uint8Array>,
  type: (text: string) => unknown,
  close: () => Promise<void>,
): Typewriter {
  const chunks = output[Symbol.asyncIterator]();
  return {
    press: () =>
      timed(async () => {
        type('x');
        for (;;) {
          const { value, done } = await chunks.next();
          if (done === true) throw new Error('the terminal ended');
          if (Buffer.from(value).includes('x')) return;
        }
      }),
    [Symbol.asyncDispose]: close,
  };
}

async function ourTerminal(sandbox: Sandbox): Promise<Typewriter> {
  const opened = await sandbox.pty.open({ cols: 80, rows: 24, program: 'cat' });
  return typewriter(
    opened.output,
    (text) => opened.write(text),
    async () => await opened[Symbol.asyncDispose](),
  );
}

async function sshTerminal(place: readonly string[]): Promise<Typewriter> {
  const child = spawn('ssh', ['-tt', ...place, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'] });
  await once(child, 'spawn');
  return typewriter(
    child.stdout,
    (text) => child.stdin.write(text),
    async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  );
}

async function succeed(program: string, args: readonly string[]): Promise<void> {
  const [code] = (await once(spawn(program, args, { stdio: 'ignore' }), 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}
