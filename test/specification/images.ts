import { readFile } from 'node:fs/promises';
import { importNode, importPython } from '../engine/interpreter-images.ts';
import { imageOf, layerOf, type TestEntry } from '../../packages/engine/src/testing/test-layers.ts';
import type { TestRegistry } from '../../packages/engine/src/testing/test-registry.ts';
import { importConfigured } from '../engine/image-fixture.ts';
import type { TestEngine } from '../engine/start-engine.ts';

/** Says how its processes run; busybox says nothing. */
export const CONFIGURED = 'svc/configured';
export const CONFIGURED_LABEL = 'org.example.made-by';

/** Beside busybox: one that is configured, and one for each language. */
export async function importImages(engine: TestEngine): Promise<void> {
  await importPython(engine);
  await importNode(engine);
  const config = {
    Env: ['PATH=/bin', 'FROM_IMAGE=yes', 'BOTH=image'],
    WorkingDir: '/srv',
    User: 'user',
    Entrypoint: ['/bin/echo', 'entry'],
    Cmd: ['default'],
    Labels: { [CONFIGURED_LABEL]: 'image', both: 'image' },
  };
  await importConfigured(engine, CONFIGURED, config, await busyboxEntries());
}

/** In the registry, and on the host after a pull. */
export const PRIVATE_IMAGE = 'private';

export async function pushBusybox(registry: TestRegistry, repository: string): Promise<void> {
  await registry.push(repository, 'latest', imageOf([await layerOf(await busyboxEntries())]));
}

async function busyboxEntries(): Promise<readonly TestEntry[]> {
  const folders = ['bin/', 'dev/', 'etc/', 'proc/', 'srv/', 'sys/', 'tmp/'];
  const applets = ['sh', 'env', 'id', 'pwd', 'echo', 'sleep', 'cat'];
  return [
    ...folders.map((name) => ({ name, mode: 0o755 })),
    { name: 'bin/busybox', mode: 0o755, body: await readFile('/bin/busybox') },
    ...applets.map((name) => ({ name: `bin/${name}`, type: 'symlink' as const, linkname: 'busybox' })),
    { name: 'etc/passwd', body: 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' },
  ];
}
