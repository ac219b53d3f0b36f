import type { RestCallOutput } from '@svc/sdk';
import {
  isForAllPorts,
  isNamesRule,
  isPublicPolicy,
  type Rule,
  type ShownPolicy,
} from '../sandboxes/is-public-policy.ts';
import { linesOf, wordsOf, type SandboxForm } from './sandbox-form.ts';

type Volume = RestCallOutput<'sandboxes.volumes'>[number];
type Spec = NonNullable<RestCallOutput<'sandboxes.get'>['requested']>;

/** The fields of a sandbox that the form can show, and those that it lacks. */
export interface AskedSandbox {
  readonly name: string;
  readonly isolation: string | null;
  readonly spec: Pick<Spec, 'image' | 'env' | 'labels' | 'lifecycle' | 'resources'> & {
    readonly mounts: readonly Pick<Spec['mounts'][number], 'type' | 'guest'>[];
    readonly rlimits: readonly unknown[];
    readonly runtime: Pick<Spec['runtime'], 'cmd' | 'entrypoint' | 'hostname' | 'user' | 'workdir'>;
    readonly network: Pick<Spec['network'], 'enabled'> & {
      readonly ports: readonly unknown[];
      readonly secrets: readonly Pick<Spec['network']['secrets'][number], 'env_var' | 'allowed_hosts'>[];
      readonly policy: ShownPolicy | null;
    };
  };
}

interface FilledForm {
  readonly form: SandboxForm;
  /** Settings for which the form has no field. */
  readonly omitted: readonly string[];
}

const NAME_LENGTH = 128;
const MINUTE = 60;
const ISOLATIONS = ['microvm', 'gvisor', 'container'] as const;

/** Fills the form with the settings of a sandbox, under another name. */
export function fromSandbox({ name, isolation, spec }: AskedSandbox, volumes: readonly Volume[]): FilledForm {
  const omitted: string[] = [];
  /** The line, or none when the form would parse it differently. */
  const keep = (line: string | undefined, what: string): readonly string[] => {
    if (line !== undefined && linesOf(line).length === 1 && line.trim() === line) return [line];
    omitted.push(what);
    return [];
  };
  const words = spec.runtime.cmd ?? [];
  const command = words.map(quote).join(' ');
  const isReadAgain = JSON.stringify(wordsOf(command)) === JSON.stringify(words);
  if (!isReadAgain) omitted.push('command');
  const { enabled, policy, secrets, ports } = spec.network;
  const reach = enabled ? reachOf(policy) : ({ reach: 'off', domains: '' } as const);
  const form: SandboxForm = {
    name: nextName(name),
    image: spec.image ?? '',
    snapshot: '',
    command: isReadAgain ? command : '',
    vcpus: String(spec.resources.vcpus),
    memoryMib: String(spec.resources.memory_mib),
    diskMib: textOf(spec.resources.disk_size_mib),
    env: spec.env
      .flatMap(({ key, value }) => keep(`${key}=${value}`, `environment variable ${key}`))
      .join('\n'),
    labels: Object.entries(spec.labels)
      .flatMap(([key, value]) => keep(`${key}=${value}`, `label ${key}`))
      .join('\n'),
    mounts: spec.mounts
      .flatMap(({ guest }) => keep(mountLine(guest, volumes), `mount at ${guest}`))
      .join('\n'),
    reach: reach?.reach ?? 'none',
    domains: reach?.domains ?? '',
    secrets: secrets.flatMap((secret) => keep(secretLine(secret), `secret ${secret.env_var}`)).join('\n'),
    isolation: ISOLATIONS.find((each) => each === isolation) ?? 'auto',
    isEphemeral: spec.lifecycle.ephemeral,
    idleMinutes: minutesOf(spec.lifecycle.idle_timeout_secs),
    maxMinutes: minutesOf(spec.lifecycle.max_duration_secs),
  };
  if (reach === undefined) omitted.push('network rules');
  return { form, omitted: [...omitted, ...unknownTo(spec, ports.length)] };
}

/** Undefined: rules that the form cannot express. */
function reachOf(
  policy: AskedSandbox['spec']['network']['policy'],
): Pick<SandboxForm, 'reach' | 'domains'> | undefined {
  if (policy === null || isPublicPolicy(policy)) return { reach: 'public', domains: '' };
  const defaults = `${policy.default_egress} ${policy.default_ingress}`;
  const [names, ...rules] = policy.rules;
  if (names === undefined && defaults === 'allow allow') return { reach: 'all', domains: '' };
  if (names === undefined && defaults === 'deny deny') return { reach: 'none', domains: '' };
  const domains = rules.map(domainOf);
  if (defaults !== 'deny deny' || !isNamesRule(names) || domains.includes(undefined)) return undefined;
  return { reach: 'named', domains: domains.join('\n') };
}

/** Undefined also for a rule about some ports: in the form it would be about all of them. */
function domainOf(rule: Rule): string | undefined {
  const { direction, action, destination } = rule;
  if (!isForAllPorts(rule)) return undefined;
  if (direction !== 'egress' || action !== 'allow' || typeof destination !== 'object') return undefined;
  return 'domain' in destination ? destination.domain : undefined;
}

function unknownTo(spec: AskedSandbox['spec'], ports: number): readonly string[] {
  const { entrypoint, hostname, user, workdir } = spec.runtime;
  const more = [
    [ports > 0, 'published ports'],
    [spec.rlimits.length > 0, 'resource limits'],
    [entrypoint !== null && entrypoint.length > 0, 'entrypoint'],
    [hostname !== null, 'hostname'],
    [user !== null, 'user'],
    [workdir !== null, 'working folder'],
  ] as const;
  return more.flatMap(([isThere, what]) => (isThere ? [what] : []));
}

function mountLine(guest: string, volumes: readonly Volume[]): string | undefined {
  const volume = volumes.find(({ mount_path: path }) => path === guest);
  if (volume === undefined || volume.name === null) return undefined;
  return `${volume.name}:${guest}${volume.read_only ? ':ro' : ''}`;
}

type Secret = AskedSandbox['spec']['network']['secrets'][number];

function secretLine({ env_var: name, allowed_hosts: hosts }: Secret): string | undefined {
  const named = hosts.flatMap((host) => (host.type === 'any' ? [] : [host.value]));
  return named.length === hosts.length ? `${name}@${named.join(',')}` : undefined;
}

/** The text for the command field. */
function quote(word: string): string {
  if (/^[^\s"']+$/.test(word)) return word;
  return word.includes('"') ? `'${word}'` : `"${word}"`;
}

/** `web` → `web-2` → `web-3`, because the name itself is taken. */
function nextName(name: string): string {
  const [, stem = name, number = '1'] = /^(.*?)-(\d{1,6})$/.exec(name) ?? [];
  const end = `-${Number(number) + 1}`;
  return `${stem.slice(0, NAME_LENGTH - end.length)}${end}`;
}

function textOf(amount: number | null): string {
  return amount === null ? '' : String(amount);
}

function minutesOf(seconds: number | null): string {
  return seconds === null ? '' : String(seconds / MINUTE);
}
