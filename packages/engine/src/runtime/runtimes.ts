import { existsSync } from 'node:fs';
import type { Isolation } from '@svc/contract/orchestrator';
import { crun } from './crun.ts';
import type { OciOptions } from './oci-runtime.ts';
import { runc } from './runc.ts';
import type { Runtime } from './runtime.ts';
import { runsc } from './runsc.ts';

/** An OCI runtime, as the engine, the doctor and the tests know it. */
export interface KnownRuntime {
  readonly name: string;
  readonly isolation: Isolation;
  /** The environment variable that names another build. */
  readonly variable: string;
  /** The build that set-up installs; null: none. */
  readonly build: string | null;
  /** The program without that build; looked up in the folders of the system unless it is a path. */
  readonly program: string;
  /** The commands that install it and that get a newer build. */
  readonly install: string;
  readonly upgrade: string;
  /** A host may lack it: another runtime provides the same class. */
  readonly isOptional: boolean;
  readonly create: (options: OciOptions & { readonly program?: string }) => Runtime;
}

/** In order of preference within a class. */
export const RUNTIMES = [
  {
    name: 'runsc',
    isolation: 'gvisor',
    variable: 'SVC_RUNSC',
    build: '/opt/svc/bin/runsc',
    program: '/opt/svc/bin/runsc',
    install: 'make runsc',
    upgrade: 'make runsc FROM=source',
    isOptional: false,
    create: runsc,
  },
  {
    name: 'crun',
    isolation: 'container',
    variable: 'SVC_CRUN',
    build: null,
    program: 'crun',
    install: 'apt-get install crun',
    upgrade: 'apt-get install --only-upgrade crun',
    isOptional: true,
    create: crun,
  },
  {
    name: 'runc',
    isolation: 'container',
    variable: 'SVC_RUNC',
    build: '/opt/svc/bin/runc',
    program: 'runc',
    install: 'apt-get install runc',
    upgrade: 'make runc',
    isOptional: false,
    create: runc,
  },
] as const satisfies readonly KnownRuntime[];

export type RuntimeName = (typeof RUNTIMES)[number]['name'];

export function runtimeNamed(name: RuntimeName): KnownRuntime {
  const found = RUNTIMES.find((runtime) => runtime.name === name);
  if (found === undefined) throw new Error(`there is no runtime ${name}`);
  return found;
}

/** The program of each runtime: the build that the operator names, else that of set-up, else the system's. */
export function runtimePrograms(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<RuntimeName, string>> {
  const programs = RUNTIMES.map(({ name, variable, build, program }) => {
    const installed = build !== null && existsSync(build) ? build : program;
    return [name, env[variable] ?? installed] as const;
  });
  // The keys are the names of the table.
  return Object.fromEntries(programs) as Record<RuntimeName, string>;
}
