import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, copyFile, cp, link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';

export const INIT_PROGRAM = fileURLToPath(new URL('../../../init/build/svc-init', import.meta.url));

const APPLETS =
  'awk cat chmod chown cut date dd df echo env false find grep head hostname id ln ls mkdir mkfifo mknod mount nproc ps readlink rm sed seq sh sleep sort stat tail touch true umount uname wc';

/**
 * Everything that a sandbox needs, made for real in one temporary folder: a busybox image under an overlay, prepared namespaces, and
 * guest folders on their own tmpfs.
 */
export class SandboxFiles implements AsyncDisposable {
  readonly folder: string;
  readonly hostCalls: SvcHostCalls;
  readonly #undo = new AsyncDisposableStack();

  private constructor(folder: string, hostCalls: SvcHostCalls) {
    this.folder = folder;
    this.hostCalls = hostCalls;
  }

  static async create(): Promise<SandboxFiles> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-runtime-'));
    const files = new SandboxFiles(folder, new SvcHostCalls({ processes: 1 }));
    files.#undo.defer(() => rm(folder, { recursive: true, force: true }));
    files.#undo.defer(() => files.hostCalls.close());
    await chmod(folder, 0o711);
    await mkdir(join(folder, 'guests'));
    files.#undo.defer(() => files.hostCalls.unmount(join(folder, 'guests')));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0711,nosuid,nodev', 'guests', join(folder, 'guests')]);
    await copyFile(INIT_PROGRAM, join(folder, 'guests/svc-init'));
    await chmod(join(folder, 'guests/svc-init'), 0o755);
    await files.#createImage();
    return files;
  }

  /** A complete spec; the paths in it exist unless `changes` replace them. */
  async spec(changes: Partial<RuntimeSpec> = {}): Promise<RuntimeSpec> {
    const handle = `t${randomBytes(6).toString('hex')}`;
    const path = (name: string) => join(this.folder, `${handle}-${name}`);
    const slot = await this.#slot(handle);
    const rootfs = path('rootfs');
    await Promise.all([rootfs, path('upper'), path('work')].map((name) => mkdir(name)));
    this.#undo.defer(() => this.hostCalls.unmount(rootfs));
    await this.hostCalls.mountOverlay({
      target: rootfs,
      layers: [join(this.folder, 'image')],
      upper: path('upper'),
      work: path('work'),
      userPath: slot.userNamespace,
      idBase: slot.idBase,
    });
    const guest = join(this.folder, 'guests', handle);
    await mkdir(join(guest, 'svc'), { recursive: true });
    await link(join(this.folder, 'guests/svc-init'), join(guest, 'svc/init'));
    const procFiles = {
      meminfo: join(guest, 'meminfo'),
      cpuinfo: join(guest, 'cpuinfo'),
      cpuOnline: join(guest, 'cpu-online'),
    };
    await Promise.all(Object.values(procFiles).map((file) => writeFile(file, 'shown\n')));
    return {
      handle,
      rootfs,
      hostname: 'guest-host',
      guestFolder: join(guest, 'svc'),
      initToken: randomBytes(32).toString('hex'),
      profile: 'default',
      slot,
      vcpus: 1,
      memoryMib: 128,
      maxProcesses: 64,
      cgroupParent: null,
      rlimits: [],
      mounts: [],
      procFiles,
      ...changes,
    };
  }

  /** Runs before everything else is removed. */
  defer(cleanup: () => Promise<void>): void {
    this.#undo.defer(cleanup);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#undo.disposeAsync();
  }

  async #slot(handle: string): Promise<RuntimeSpec['slot']> {
    const userNamespace = join(this.folder, `${handle}-user`);
    const networkNamespace = join(this.folder, `${handle}-network`);
    // Any range that is unlikely to collide with another test on this machine.
    const idBase = randomInt(16_384, 32_767) * 65_536;
    this.#undo.defer(() => this.hostCalls.removeNamespaces(userNamespace, networkNamespace));
    const paths = { userPath: userNamespace, networkPath: networkNamespace };
    await this.hostCalls.createNamespaces({ ...paths, idBase, link: null });
    return { key: handle, userNamespace, networkNamespace, idBase, link: null };
  }

  async #createImage(): Promise<void> {
    const image = join(this.folder, 'image');
    await mkdir(join(image, 'bin'), { recursive: true });
    await mkdir(join(image, 'etc'));
    await mkdir(join(image, 'tmp'));
    await chmod(join(image, 'tmp'), 0o1777);
    await cp('/bin/busybox', join(image, 'bin/busybox'));
    await writeFile(join(image, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n');
    await Promise.all(APPLETS.split(' ').map((name) => symlink('busybox', join(image, 'bin', name))));
  }
}
