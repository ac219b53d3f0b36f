import { PlatformError } from '@svc/contract';

/** The field of `config` of `sandbox.start` that each part of a spec comes from. */
const FIELDS: Readonly<Record<string, string>> = {
  'image.reference': 'config.image',
  'resources.memory_mib': 'config.memory',
  'resources.vcpus': 'config.cpus',
  env: 'config.envs',
  'runtime.workdir': 'config.workdir',
  'runtime.shell': 'config.shell',
  'runtime.scripts': 'config.scripts',
  mounts: 'config.volumes',
  'network.ports': 'config.ports',
};

/** Renames the field of an invalid spec to that of the caller's `config`. */
export function inWordsOfConfig(error: unknown): unknown {
  if (!PlatformError.is(error, 'invalid_sandbox_config') || error.isConflict) return error;
  const field = error.details?.['field'];
  if (typeof field !== 'string') return error;
  const known = Object.keys(FIELDS).find((name) => isPartOf(field, name));
  // It names a field of `config` already.
  if (known === undefined) return error;
  const reason = error.message.startsWith(`${field}: `)
    ? error.message.slice(field.length + 2)
    : error.message;
  // The rest of the path is the same in both, but items of `config` are strings without fields.
  const name = `${FIELDS[known]}${field.slice(known.length).replace(/^(\[\d+\]).*$/, '$1')}`;
  return new PlatformError('invalid_sandbox_config', `Invalid params: ${name} ${reason}`, {
    details: { ...error.details, field: name, reason },
    cause: error,
  });
}

function isPartOf(field: string, name: string): boolean {
  return field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`);
}
