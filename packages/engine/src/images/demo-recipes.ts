import type { ImageConfig } from '@svc/contract/orchestrator';

export type DemoImage = 'svc/base' | 'svc/python' | 'svc/node' | 'svc/code';

export interface DemoRecipe {
  readonly packages: readonly string[];
  readonly config: Partial<ImageConfig>;
  /** Takes a gigabyte and minutes, so it is built only when named. */
  readonly isLarge?: boolean;
}

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Common shell tools, and the libraries that Node needs, so that base and node share one unpacking. */
const BASE = [
  'adduser',
  'base-files',
  'base-passwd',
  'bash',
  'busybox-static',
  'ca-certificates',
  'coreutils',
  'curl',
  'dash',
  'debianutils',
  'diffutils',
  'findutils',
  'git',
  'grep',
  'gzip',
  'hostname',
  'iputils-ping',
  'libatomic1',
  'libc-bin',
  'libstdc++6',
  'login',
  'mawk',
  'ncurses-base',
  'netbase',
  'procps',
  'sed',
  'sudo',
  'tar',
];

const PYTHON = [...BASE, 'python3', 'python3-pip', 'python3-venv'];
const PYTHON_CONFIG = { cmd: ['python3'], env: [PATH, 'LANG=C.UTF-8', 'PIP_ROOT_USER_ACTION=ignore'] };

/** Recipes with the same packages share one unpacking, in this order: a later one may extend an earlier one. */
export const DEMO_RECIPES: Readonly<Record<DemoImage, DemoRecipe>> = {
  'svc/base': { packages: BASE, config: { cmd: ['/bin/bash'], env: [PATH, 'LANG=C.UTF-8'] } },
  'svc/node': { packages: BASE, config: { cmd: ['node'], env: [PATH, 'LANG=C.UTF-8'] } },
  'svc/python': { packages: PYTHON, config: PYTHON_CONFIG },
  'svc/code': {
    packages: [
      ...PYTHON,
      'fonts-dejavu-core',
      'python3-ipykernel',
      'python3-matplotlib',
      'python3-numpy',
      'python3-pandas',
      'python3-pil',
    ],
    config: PYTHON_CONFIG,
    isLarge: true,
  },
};
