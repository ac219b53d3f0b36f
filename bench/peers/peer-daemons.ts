import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { writeBusyboxRootfs } from '../../packages/engine/src/testing/test-images.ts';
import { DockerApi } from './docker-api.ts';

/** Where `scripts/install-peers.sh` puts the programs of Debian's packages. */
export const PEERS = '/opt/svc/lib/peers';
const IMAGE = 'svc-bench:latest';
const CGROUPS = '/sys/fs/cgroup';
const READY_TIMEOUT_MS = 60_000;

export type PeerName = 'docker' | 'podman';

/**
 * One of the compared engines, with its own folder and its own network, mount and process namespaces: its bridge and its rules do not
 * affect the host, and all of it ends with the first process of the namespace.
 */
export class PeerDaemon {
  readonly name: PeerName;
  readonly api: DockerApi;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(name: PeerName, folder: string, child: ChildProcess) {
    this.name = name;
    this.#folder = folder;
    this.#child = child;
    this.api = new DockerApi(join(folder, 'engine.sock'), IMAGE, `/${basename(folder)}`);
  }

  static async start(name: PeerName): Promise<PeerDaemon> {
    const folder = await mkdtemp(join(tmpdir(), `svc-bench-${name}-`));
    await mkdir(join(folder, 'rootfs'));
    await writeBusyboxRootfs(join(folder, 'rootfs'));
    if (name === 'podman') await writeFile(join(folder, 'containers.conf'), PODMAN_SETTINGS);
    const daemon = new PeerDaemon(name, folder, launch(folder, SCRIPTS[name]));
    try {
      await daemon.#untilReady();
      return daemon;
    } catch (error) {
      await daemon[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** All that it runs is below this process. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.api.close();
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await ended;
    }
    // The kernel then ends the rest of the namespace.
    const patient = { recursive: true, force: true, maxRetries: 20, retryDelay: 100 };
    await rm(this.#folder, patient);
    for (const tree of await readdir(CGROUPS))
      await removeCgroup(join(CGROUPS, tree, basename(this.#folder)));
  }

  async #untilReady(): Promise<void> {
    await waitUntil(
      async () => {
        if (this.#child.exitCode !== null) throw new Error(await this.#log());
        return await this.api.findImage().then(
          () => true,
          () => false,
        );
      },
      { timeoutMs: READY_TIMEOUT_MS, what: `${this.name} answers` },
    ).catch(async (error: unknown) => {
      throw new Error(`${this.name} did not start: ${await this.#log()}`, { cause: error });
    });
  }

  async #log(): Promise<string> {
    return (await readFile(join(this.#folder, 'log'), 'utf8')).slice(-4000);
  }
}

/** With those below it; nothing when there is none. */
async function removeCgroup(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeCgroup(join(folder, entry.name));
  await rmdir(folder).catch(() => undefined);
}

/** SAFETY: the scripts are constants; the folder is `$1`, and mktemp's. */
function launch(folder: string, script: string): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a');
  // Every end of this program ends `unshare`, and with it the whole namespace.
  const apart = [
    '--pdeathsig',
    'KILL',
    '--',
    'unshare',
    '--net',
    '--mount',
    '--propagation',
    'private',
    '--pid',
    '--fork',
    '--kill-child=KILL',
  ];
  const args = [...apart, '--mount-proc', 'tini', '-s', '-g', '--', 'sh', '-ec', script, 'sh', folder];
  const path = `${PEERS}/usr/bin:${PEERS}/usr/sbin:${process.env['PATH'] ?? ''}`;
  const libraries = `${PEERS}/usr/lib/x86_64-linux-gnu:${PEERS}/usr/lib/aarch64-linux-gnu`;
  const env = {
    PATH: path,
    HOME: folder,
    LD_LIBRARY_PATH: libraries,
    CONTAINERS_CONF: `${folder}/containers.conf`,
  };
  return spawn('setpriv', args, { env, stdio: ['ignore', log, log] });
}

/** A tmpfs over /run, so that the daemons find no state of other instances. */
const APART = 'mount -t tmpfs none /run; ip link set lo up; cd "$1";';

const SCRIPTS: Readonly<Record<PeerName, string>> = {
  docker: `${APART}
    dockerd --host "unix://$1/engine.sock" --data-root "$1/data" --exec-root /run/docker --pidfile /run/docker.pid \\
      --storage-driver overlay2 --bip 172.31.255.1/24 &
    until docker --host "unix://$1/engine.sock" version >/dev/null 2>&1; do sleep 0.1; done
    tar -C rootfs -c . | docker --host "unix://$1/engine.sock" import - ${IMAGE}
    wait`,
  podman: `${APART}
    podman="podman --root $1/data --runroot /run/podman --cgroup-manager cgroupfs --storage-driver overlay"
    tar -C rootfs -c . | $podman import - ${IMAGE}
    exec $podman system service --time 0 "unix://$1/engine.sock"`,
};

const PODMAN_SETTINGS = `
[engine]
helper_binaries_dir = ["${PEERS}/usr/lib/podman"]
conmon_path = ["${PEERS}/usr/bin/conmon"]
runtime = "runc"
events_logger = "file"
[network]
network_backend = "netavark"
`;
