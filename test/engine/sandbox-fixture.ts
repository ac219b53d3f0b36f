import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ChannelClient,
  PlatformError,
  type ExecRequest,
  type RunOptions,
  type SandboxSpec,
} from '@svc/contract';
import type { CreateSandbox, Isolation } from '@svc/contract/orchestrator';
import { socketTransport } from '@svc/contract/node-socket-transport';
import type { SandboxView } from '@svc/engine/client';
import { Cgroups } from '../../packages/engine/src/cgroup/cgroups.ts';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { BUSYBOX, type TestEngine } from './start-engine.ts';

/** The classes that every promise is tested on. */
export const CLASSES: readonly Isolation[] = [...new Set(RUNTIMES.map(({ isolation }) => isolation))];

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
    for (let attempt = 1; ; attempt++) {
      try {
        return await ChannelClient.connect(socketTransport(await this.engine.client.openChannel(this.id)));
      } catch (error) {
        // A sandbox that is too busy to dial says so; on a busy host that may be each of them.
        if (attempt === 3 || !PlatformError.is(error, 'unavailable')) throw error;
      }
    }
  }

  async run(request: ExecRequest, options: RunOptions = {}): Promise<Ran> {
    const channel = await this.connect();
    try {
      const { code, reason, stdout, stderr } = await channel.run(request, { timeoutMs: 100_000, ...options });
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

  /** Puts a file into the sandbox. */
  async put(path: string, content: Uint8Array, mode: number): Promise<void> {
    const channel = await this.connect();
    try {
      await channel.files.writeFile(path, content);
      await channel.files.setStat(path, { mode });
    } finally {
      channel.close();
    }
  }

  /** What names it on the host: its cgroup, folders and record. */
  get handle(): string {
    const found = recordsOf(this.engine).find(({ id }) => id === this.id);
    if (found === undefined) throw new Error(`there is no record of ${this.id}`);
    return found.handle;
  }

  /** Its processes as the host sees them. */
  hostPids(): readonly number[] {
    return cgroups.processIds(this.handle);
  }

  async remove(): Promise<void> {
    await this.engine.client.removeSandbox(this.id);
  }
}

const cgroups = new Cgroups();

/** As much of a record as tests look at. */
export interface StoredRecord {
  readonly handle: string;
  readonly id: string | null;
  readonly state: string;
  readonly isolation: string;
  readonly run: { readonly token: string } | null;
}

/** The records on disk at this moment, while sandboxes come and go. */
export function recordsOf(engine: TestEngine): StoredRecord[] {
  const folder = join(engine.folder, 'sandboxes');
  return readdirSync(folder).flatMap((handle) => {
    try {
      return [readRecord(join(folder, handle, 'record.json'))];
    } catch {
      // Removed, or not there yet.
      return [];
    }
  });
}

/** Of its file the last line counts. */
export function readRecord(path: string): StoredRecord {
  return JSON.parse(readFileSync(path, 'utf8').trim().split('\n').at(-1) ?? '') as StoredRecord;
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
