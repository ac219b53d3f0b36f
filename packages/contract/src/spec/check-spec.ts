import { PlatformError } from '../errors.ts';
import { parseReference } from '../image-reference.ts';
import { compile, type Validator } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { checkNetwork } from './check-network.ts';
import { normalizeGuestPath } from './guest-path.ts';
import type { Mount } from './mounts.ts';
import { SandboxSpec, type Rlimit } from './sandbox-spec.ts';
import { RESERVED_LABEL_PREFIXES } from './strict.ts';
import { isUnlimited } from './unlimited.ts';

/** Scripts live in the host's memory while the sandbox runs. */
const MAX_SCRIPT_CHARACTERS = 1_048_576;

let compiled: Validator<SandboxSpec> | undefined;

/**
 * Checks a spec from outside. @throws PlatformError `invalid_sandbox_config` that names the field and what it takes, `invalid_image` when what
 * it names cannot be an image.
 */
export function checkSpec(value: unknown): SandboxSpec {
  compiled ??= compile(SandboxSpec);
  const validator = compiled;
  if (!validator.check(value)) {
    const { field, reason } = firstProblem(SandboxSpec, value, 'spec');
    throw invalid(field, reason);
  }
  if (value.image.type === 'oci') parseReference(value.image.reference);
  checkLabels(value.labels ?? {});
  checkEnv(value.env ?? []);
  checkRlimits(value.rlimits ?? []);
  checkScripts(Object.values(value.runtime?.scripts ?? {}));
  checkMounts(value.mounts ?? []);
  checkNetwork(value.network, value.env ?? [], invalid);
  return value;
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}

function checkLabels(labels: Readonly<Record<string, string>>): void {
  for (const key of Object.keys(labels)) {
    const prefix = RESERVED_LABEL_PREFIXES.find((reserved) => key.startsWith(reserved));
    if (prefix !== undefined)
      throw invalid(`labels.${key}`, `the prefix ${prefix} is reserved; choose another key`);
  }
}

function checkEnv(env: readonly { readonly key: string }[]): void {
  const seen = new Set<string>();
  for (const [index, { key }] of env.entries()) {
    if (seen.has(key)) throw invalid(`env[${index}].key`, `${key} is given twice; keep one`);
    seen.add(key);
  }
}

/** With these a thread could exceed the CPU share of its sandbox. */
const PRIORITIES: ReadonlySet<string> = new Set(['nice', 'rtprio']);

function checkRlimits(limits: readonly Rlimit[]): void {
  const seen = new Set<string>();
  for (const [index, { resource, soft, hard }] of limits.entries()) {
    const field = `rlimits[${index}]`;
    if (seen.has(resource)) throw invalid(`${field}.resource`, `${resource} is given twice; keep one`);
    seen.add(resource);
    if (soft > hard && !isUnlimited(hard)) throw invalid(`${field}.soft`, 'must not be above hard');
    if (hard > 0 && PRIORITIES.has(resource))
      throw invalid(`${field}.hard`, `must be 0: a sandbox does not raise its priority by ${resource}`);
  }
}

function checkScripts(scripts: readonly string[]): void {
  const characters = scripts.reduce((sum, script) => sum + script.length, 0);
  if (characters > MAX_SCRIPT_CHARACTERS)
    throw invalid(
      'runtime.scripts',
      `hold at most ${MAX_SCRIPT_CHARACTERS} characters together; use patches`,
    );
}

function checkMounts(mounts: readonly Mount[]): void {
  const seen = new Set<string>();
  for (const [index, mount] of mounts.entries()) {
    const field = `mounts[${index}]`;
    const guest = normalizeGuestPath(mount.guest);
    if (guest === undefined)
      throw invalid(`${field}.guest`, 'must be an absolute path without . or .. parts');
    if (guest === '/' || isOurs(guest)) throw invalid(`${field}.guest`, `${guest} cannot be mounted over`);
    if (seen.has(guest)) throw invalid(`${field}.guest`, `${guest} is mounted twice; keep one`);
    seen.add(guest);
    const { override_uid: uid, override_gid: gid } = mount.options ?? {};
    if (((uid ?? null) === null) !== ((gid ?? null) === null)) {
      throw invalid(`${field}.options`, 'override_uid and override_gid must be set together');
    }
    if (
      'host_permissions' in mount &&
      mount.host_permissions === 'mirror' &&
      mount.stat_virtualization === 'off'
    ) {
      throw invalid(`${field}.host_permissions`, 'mirror needs stat_virtualization strict or relaxed');
    }
  }
}

function isOurs(guest: string): boolean {
  return ['/proc', '/sys', '/dev', '/.svc'].some((path) => guest === path || guest.startsWith(`${path}/`));
}
