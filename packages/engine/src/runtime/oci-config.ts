import type { Rlimit } from '@svc/contract';
import { toU64 } from '@svc/contract/spec';
import { CGROUP_PARENT } from '../cgroup/cgroup-layout.ts';
import { GUEST_CAPABILITIES } from './capabilities.ts';
import type { RuntimeSpec } from './runtime.ts';

/** The part of a sandbox's OCI configuration that depends on which kernel serves it. */
export interface KernelParts {
  readonly mounts: readonly OciMount[];
  /** Additional environment of svc-init, as `KEY=VALUE`. */
  readonly initEnvironment?: readonly string[];
  readonly namespaces: readonly OciNamespace[];
  readonly resources: OciResources;
  /** The limits of every process of the sandbox; svc-init sets them. */
  readonly rlimits: readonly Rlimit[];
  /** The limits among them that the runtime sets on PID 1, because svc-init could not raise them. */
  readonly initRlimits: readonly Rlimit[];
  readonly maskedPaths: readonly string[];
  readonly readonlyPaths: readonly string[];
}

/** Fields of https://github.com/opencontainers/runtime-spec/blob/v1.0.2/config-linux.md */
export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

export interface OciNamespace {
  readonly type: string;
  readonly path?: string;
}

export interface OciResources {
  readonly devices: readonly { readonly allow: boolean; readonly access: string }[];
  readonly cpu: {
    readonly shares?: number;
    readonly quota?: number;
    readonly period?: number;
    readonly cpus?: string;
  };
  readonly memory: { readonly limit?: number; readonly swap?: number };
  readonly pids?: { readonly limit: number };
}

export interface GuestConfig {
  /** The text of config.json. */
  readonly json: string;
  /** The limits granted with it. */
  readonly rlimits: readonly Rlimit[];
}

/** The mount point of the guest folder. */
export const GUEST_FOLDER = '/.svc';

/** PID 1 is svc-init, root of its own user namespace, with only the documented capabilities. */
export function ociConfig(spec: RuntimeSpec, parts: KernelParts): GuestConfig {
  const ids = [{ containerID: 0, hostID: spec.slot.idBase, size: 65_536 }];
  const config = {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      cwd: '/',
      args: [`${GUEST_FOLDER}/init`],
      env: [
        `SVC_SOCKET=${GUEST_FOLDER}/engine.sock`,
        `SVC_TOKEN=${spec.initToken}`,
        `SVC_PROFILE=${spec.profile}`,
        ...(parts.initEnvironment ?? []),
      ],
      // SAFETY: no ambient and no inheritable set, so a program run by another user starts with none.
      capabilities: {
        bounding: GUEST_CAPABILITIES,
        effective: GUEST_CAPABILITIES,
        permitted: GUEST_CAPABILITIES,
      },
      noNewPrivileges: true,
      rlimits: parts.initRlimits.map(ociRlimit),
      oomScoreAdj: OOM_SCORE_ADJUSTMENT,
    },
    root: { path: spec.rootfs, readonly: false },
    hostname: spec.hostname,
    mounts: parts.mounts,
    linux: {
      cgroupsPath: `${spec.cgroupParent ?? `/${CGROUP_PARENT}`}/${spec.handle}`,
      uidMappings: ids,
      gidMappings: ids,
      namespaces: parts.namespaces,
      resources: parts.resources,
      maskedPaths: parts.maskedPaths,
      readonlyPaths: parts.readonlyPaths,
    },
  };
  return { json: JSON.stringify(config), rlimits: parts.rlimits };
}

/** When the host runs out of memory, sandboxes are killed before the engine and the server. */
const OOM_SCORE_ADJUSTMENT = 300;

function ociRlimit({ resource, soft, hard }: Rlimit): object {
  return { type: `RLIMIT_${resource.toUpperCase()}`, soft: toU64(soft), hard: toU64(hard) };
}
