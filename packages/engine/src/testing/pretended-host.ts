import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { FairSemaphore } from '@svc/contract/async';
import { pino } from 'pino';
import { EventLog } from '../events/event-log.ts';
import { GuestFolders } from '../guest/guest-folders.ts';
import { TokenBuckets } from '../guest/token-buckets.ts';
import type { HostCalls } from '../host/host-calls.ts';
import type { Image, Images } from '../images/images.ts';
import type { Kit } from '../sandboxes/kit.ts';
import { RecordFiles } from '../sandboxes/record-files.ts';
import { SecretFiles } from '../sandboxes/secret-values.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import { FakeNetwork } from './fake-network.ts';
import { FakeRootfs } from './fake-rootfs.ts';
import { FakeRuntime } from './fake-runtime.ts';
import { FakeVolumes } from './fake-volumes.ts';
import type { Fault } from './fault.ts';

/** A pretended host with everything a sandbox can leave on it. */
export class PretendedHost {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-unwind-'));
  readonly network = new FakeNetwork();
  readonly rootfs = new FakeRootfs(join(this.folder, 'rootfs'));
  readonly runtime = new FakeRuntime(join(this.folder, 'runtime'));
  readonly volumes = new FakeVolumes(join(this.folder, 'volumes'));
  readonly snapshots = new Snapshots(join(this.folder, 'snapshots'), pino({ level: 'silent' }));
  readonly records = new RecordFiles(join(this.folder, 'sandboxes'));
  readonly guestFolders = new GuestFolders(join(this.folder, 'run'));
  readonly staged = new Set<string>();

  async prepare(): Promise<void> {
    mkdirSync(join(this.folder, 'layer'));
    writeFileSync(join(this.folder, 'init'), '');
    await this.guestFolders.prepare(join(this.folder, 'init'));
    await this.network.recover([]);
    await this.rootfs.recover([]);
    await this.snapshots.recover();
    await this.volumes.create('data', 16);
    // All records live here; an empty folder is what "nothing left" looks like.
    await this.records.readAll(() => assert.fail('no record is broken'));
  }

  kit(fault: Fault): Kit {
    const volumes = fault.wrap(this.volumes, ['attach']);
    return {
      bootId: 'boot',
      logger: pino({ level: 'silent' }),
      records: fault.wrapSync(fault.wrap(this.records, ['write']), ['append']),
      secrets: new SecretFiles(join(this.folder, 'secrets')),
      events: new EventLog(),
      images: this.#images(fault),
      rootfs: fault.wrap(this.rootfs, ['createDisk', 'saveDisk', 'restoreDisk', 'mount']),
      space: {
        require: () => undefined,
        explain: () => undefined,
        view: () => assert.fail('not asked for'),
      },
      snapshots: this.snapshots,
      // The adapter itself gives back a slot whose acquire failed: no other code knows its name.
      network: fault.isBefore ? fault.wrap(this.network, ['acquire']) : this.network,
      volumes,
      guestFolders: fault.wrapSync(this.guestFolders, ['create']),
      tokenBuckets: new TokenBuckets(),
      runtimes: [fault.wrap(this.runtime, ['start'])],
      knownRuntimes: [this.runtime],
      defaultIsolation: 'container',
      missing: new Map(),
      probes: [],
      cgroups: {
        usage: () => undefined,
        cpuMicroseconds: () => 0,
        oomKills: () => 0,
        forkRefusals: () => 0,
        limitSockets: () => {},
        processIds: () => [],
        parentProblem: () => undefined,
        hasOtherParents: () => false,
      },
      tuning: null,
      rlimitCeilings: new Map(),
      mounts: {
        hostCalls: fault.wrap(this.#hostCalls(), ['bind']),
        volumes,
        bindRoots: [],
        diskImageRoots: [],
        rawCopyFolder: join(this.folder, 'raw-copies'),
        stagingFolder: join(this.folder, 'staging'),
        openFolder: () => assert.fail('nothing is copied'),
      },
      readHostSize: () => ({ vcpus: 2, memoryMib: 4096, diskMib: 8192 }),
      procContent: () => ({ meminfo: '', cpuinfo: '', cpuOnline: '' }),
      startPlaces: new FairSemaphore(4),
      limits: { maxProcesses: 10, startTimeoutMs: 60_000, stopGraceMs: 100, reconnectMs: 60_000 },
    };
  }

  async leftovers(): Promise<string[]> {
    return [
      ...this.network.keys,
      ...(await this.rootfs.leftovers()),
      ...(await this.runtime.list()),
      ...readdirSync(join(this.folder, 'sandboxes')),
      ...readdirSync(join(this.folder, 'snapshots')),
      ...readdirSync(join(this.folder, 'run/guests')).filter((name) => name !== 'svc-init'),
      ...this.staged,
    ];
  }

  async dispose(): Promise<void> {
    for (const handle of await this.runtime.list()) await this.runtime.remove(handle);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #images(fault: Fault): Images {
    const config = {
      entrypoint: [],
      cmd: [],
      env: [],
      workdir: null,
      user: null,
      labels: {},
      stopSignal: null,
    };
    const layers = [join(this.folder, 'layer')];
    const about = {
      id: 'sha256:1',
      digest: null,
      references: ['x'],
      architecture: 'amd64',
      sizeBytes: 0,
      createdAt: '',
      scopes: null,
    };
    const image: Image = { ...about, layers, config };
    // SAFETY of the type: creating and starting a sandbox asks the store for nothing but these two.
    const images = { resolve: async () => image, get: async () => image } as unknown as Images;
    return fault.wrap(images, ['resolve', 'get']);
  }

  #hostCalls(): HostCalls {
    const { staged } = this;
    const bind: HostCalls['bind'] = async ({ target }) => {
      mkdirSync(target, { recursive: true });
      staged.add(target);
      return { kind: 'directory' };
    };
    const unmount = async (target: string) => {
      staged.delete(target);
    };
    // SAFETY of the type: mounts of a sandbox use nothing but these two.
    return { bind, unmount } as unknown as HostCalls;
  }
}

export async function pretend(t: TestContext): Promise<PretendedHost> {
  const host = new PretendedHost();
  t.after(() => host.dispose());
  await host.prepare();
  return host;
}
