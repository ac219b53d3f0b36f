import { ChannelClient } from '@svc/contract';
import { duplexTransport, type Isolation, type SandboxView } from '@svc/engine/client';
import { specOf } from '../test/engine/sandbox-fixture.ts';
import { TestEngine } from '../test/engine/start-engine.ts';

/** The time from asking for a sandbox to the first byte that a process inside writes, in parts. Milliseconds. */
export interface FirstOutput {
  readonly sandbox: SandboxView;
  readonly total: number;
  readonly create: number;
  readonly channel: number;
  readonly process: number;
}

/** Creates a sandbox with network and runs `echo` in it, as a caller would: with three calls, one after the other. */
export async function measureFirstOutput(engine: TestEngine, isolation: Isolation): Promise<FirstOutput> {
  const begun = performance.now();
  const sandbox = await engine.client.createSandbox({ isolation, start: true, spec: specOf() });
  const created = performance.now();
  const channel = await openChannel(engine, sandbox.id);
  const opened = performance.now();
  const process = await channel.exec({ cmd: '/bin/echo', args: ['x'] });
  for await (const chunk of process.stdout) if (chunk.length > 0) break;
  const spoken = performance.now();
  channel.close();
  return {
    sandbox,
    total: spoken - begun,
    create: created - begun,
    channel: opened - created,
    process: spoken - opened,
  };
}

export async function openChannel(engine: TestEngine, id: string): Promise<ChannelClient> {
  return await ChannelClient.connect(duplexTransport(await engine.client.openChannel(id)));
}

export async function runTrue(channel: ChannelClient): Promise<void> {
  const { code } = await channel.run({ cmd: '/bin/true' });
  if (code !== 0) throw new Error(`/bin/true ended with ${code}`);
}

/** An engine on a folder of its own for as long as the work takes. */
export async function withEngine<T>(
  args: readonly string[],
  work: (engine: TestEngine) => Promise<T>,
): Promise<T> {
  const engine = await TestEngine.start({ args });
  try {
    return await work(engine);
  } finally {
    await engine.destroy();
  }
}
