import type { RestCallInput } from '@svc/sdk';
import { linesOf, wordsOf, type SandboxForm } from './sandbox-form.ts';

export type CreateBody = RestCallInput<'sandboxes.create'>['body'];
type Network = NonNullable<CreateBody['network']>;
type Policy = NonNullable<Network['policy']>;
type Entry = Extract<Network['secrets'], readonly unknown[]>[number];

const SECONDS = 60;

/** The request for the form: only fields that differ from the defaults of the server. */
export function toRequest(form: SandboxForm): CreateBody {
  const network = networkOf(form);
  const lifecycle = {
    ...(form.isEphemeral ? { ephemeral: true } : {}),
    ...secondsOf('idle_timeout_secs', form.idleMinutes),
    ...secondsOf('max_duration_secs', form.maxMinutes),
  };
  const command = wordsOf(form.command);
  const labels = Object.fromEntries(linesOf(form.labels).map((line) => pairOf(line)));
  const env = linesOf(form.env)
    .map((line) => pairOf(line))
    .map(([key, value]) => ({ key, value }));
  const mounts = linesOf(form.mounts).map(mountOf);
  return {
    name: form.name.trim(),
    ...sourceOf(form),
    resources: {
      vcpus: Number(form.vcpus),
      memory_mib: Number(form.memoryMib),
      ...(form.diskMib === '' ? {} : { disk_size_mib: Number(form.diskMib) }),
    },
    ...(command.length === 0 ? {} : { runtime: { cmd: [...command] } }),
    ...(env.length === 0 ? {} : { env }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(mounts.length === 0 ? {} : { mounts }),
    ...(network === undefined ? {} : { network }),
    ...(form.isolation === 'auto' ? {} : { isolation: form.isolation }),
    ...(Object.keys(lifecycle).length === 0 ? {} : { lifecycle }),
  };
}

function sourceOf({
  image,
  snapshot,
}: SandboxForm): Pick<CreateBody, 'image' | 'source' | 'disk_snapshot_ref'> {
  return snapshot === ''
    ? { image: { type: 'oci', reference: image.trim() } }
    : { source: 'disk_snapshot', disk_snapshot_ref: { type: 'managed', id: snapshot } };
}

function networkOf({ reach, domains, secrets }: SandboxForm): Network | undefined {
  if (reach === 'off') return { enabled: false };
  const policy = policyOf(reach, linesOf(domains));
  const entries = linesOf(secrets).map(secretOf);
  if (policy === undefined && entries.length === 0) return undefined;
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(entries.length === 0 ? {} : { secrets: { entries } }),
  };
}

function policyOf(reach: SandboxForm['reach'], domains: readonly string[]): Policy | undefined {
  if (reach === 'all') return { default_egress: 'allow', default_ingress: 'allow', rules: [] };
  if (reach === 'none') return { default_egress: 'deny', default_ingress: 'deny', rules: [] };
  if (reach !== 'named') return undefined;
  const allow = { direction: 'egress', action: 'allow' } as const;
  const names = {
    ...allow,
    destination: { group: 'host' as const },
    protocols: ['udp' as const, 'tcp' as const],
    ports: [{ start: 53, end: 53 }],
  };
  return {
    default_egress: 'deny',
    default_ingress: 'deny',
    rules: [names, ...domains.map((domain) => ({ ...allow, destination: { domain } }))],
  };
}

function secretOf(line: string): Entry {
  const [name = '', hosts = ''] = line.split('@');
  return {
    env_var: name,
    source: { type: 'store', reference: name },
    allowed_hosts: hosts
      .split(',')
      .map((host) => ({ type: host.startsWith('*.') ? 'wildcard' : 'exact', value: host })),
  };
}

function mountOf(line: string): NonNullable<CreateBody['mounts']>[number] {
  const [name = '', guest = '', mode] = line.split(':');
  return { type: 'named', name, guest, options: { readonly: mode === 'ro' } };
}

function pairOf(line: string): readonly [string, string] {
  const at = line.indexOf('=');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

function secondsOf<Name extends string>(name: Name, minutes: string): { readonly [Key in Name]?: number } {
  // The one key is the given one.
  return (minutes === '' ? {} : { [name]: Math.round(Number(minutes) * SECONDS) }) as {
    readonly [Key in Name]?: number;
  };
}
