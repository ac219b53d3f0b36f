import { availableParallelism } from 'node:os';
import type { Ground, Json } from '../ground.ts';

/** As many as a request may ask for on any host, and more than the default where there are more. */
export const VCPUS = Math.min(2, availableParallelism());
export const LABELS = { team: 'blue', 'a.b/c': 'ünï' };
export const FULL = {
  resources: { vcpus: VCPUS, memory_mib: 96, disk_size_mib: 128 },
  env: [{ key: 'GREETING', value: 'two words = "quoted" $HOME' }],
  labels: LABELS,
  rlimits: [
    { resource: 'nofile', soft: 100, hard: 200 },
    { resource: 'fsize', soft: 1_048_576, hard: 1_048_576 },
  ],
  runtime: {
    workdir: '/home/user',
    shell: '/bin/ash',
    user: 'user',
    hostname: 'my-host',
    entrypoint: ['/bin/sh', '-c'],
    cmd: ['echo "main $0" > /tmp/main; exec sleep 100000', 'argument'],
    scripts: { greet: '#!/bin/sh\necho "hello $1"\n' },
  },
};

/** A sandbox that asks for something of everything. */
export async function fullBox(ground: Ground): Promise<Json> {
  return await ground.shared('full', () => ground.running(FULL));
}
