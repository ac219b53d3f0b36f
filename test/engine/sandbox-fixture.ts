import { ChannelClient, type ExecRequest, type RunOptions, type SandboxSpec } from '@svc/contract';
import { duplexTransport, type CreateSandbox, type Isolation, type SandboxView } from '@svc/engine/client';
import { BUSYBOX, type TestEngine } from './start-engine.ts';

/** The classes that every promise is tested on. */
export const CLASSES: readonly Isolation[] = ['container', 'gvisor'];

export interface Ran {
  readonly code: number;
  readonly reason: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running sandbox of a test. */
export class TestSandbox {
  readonly id: string;
  readonly view: SandboxView;
  readonly engine: TestEngine;

  constructor(engine: TestEngine, view: SandboxView) {
    this.engine = engine;
    this.view = view;
    this.id = view.id;
  }

  async connect(): Promise<ChannelClient> {
    return await ChannelClient.connect(duplexTransport(await this.engine.client.openChannel(this.id)));
  }

  async run(request: ExecRequest, options: RunOptions = {}): Promise<Ran> {
    const channel = await this.connect();
    try {
      const { code, reason, stdout, stderr } = await channel.run(request, { timeoutMs: 60_000, ...options });
      return { code, reason, stdout: text(stdout), stderr: text(stderr) };
    } finally {
      channel.close();
    }
  }

  async sh(script: string, options: RunOptions & { readonly user?: string } = {}): Promise<Ran> {
    const { user, ...rest } = options;
    return await this.run(
      { cmd: '/bin/sh', args: ['-c', script], ...(user === undefined ? {} : { user }) },
      rest,
    );
  }

  async remove(): Promise<void> {
    await this.engine.client.removeSandbox(this.id);
  }
}

export function specOf(more: Partial<SandboxSpec> = {}): SandboxSpec {
  return { image: { type: 'oci', reference: BUSYBOX }, ...more };
}

export async function startSandbox(
  engine: TestEngine,
  isolation: Isolation,
  more: Partial<SandboxSpec> = {},
  request: Partial<CreateSandbox> = {},
): Promise<TestSandbox> {
  return new TestSandbox(
    engine,
    await engine.client.createSandbox({ isolation, start: true, ...request, spec: specOf(more) }),
  );
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
