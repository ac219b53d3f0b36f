import { InvalidArgumentError } from 'commander';
import type { Sandbox } from '@svc/sdk';

type Info = Sandbox['info'];

export interface Filter {
  readonly key: keyof typeof MATCHES;
  readonly value: string;
}

/** An object, so that a missing name does not compile; importing the contract's list would load all of its schemas. */
const STATUSES = {
  created: true,
  starting: true,
  running: true,
  temporarily_unavailable: true,
  recovery_decision_required: true,
  stopping: true,
  stopped: true,
  failed: true,
  // Docker's name for ended containers.
  exited: true,
} satisfies Record<Info['status'] | 'exited', true>;

const MATCHES = {
  name: ({ name }: Info, value: string) => name.includes(value),
  id: ({ id }: Info, value: string) => id.startsWith(value),
  status: ({ status }: Info, value: string) =>
    value === 'exited' ? ['stopped', 'failed'].includes(status) : status === value,
  label: ({ spec }: Info, value: string) => hasLabel(spec?.labels ?? {}, value),
  image: ({ spec }: Info, value: string) => shortImage(spec?.image ?? '') === shortImage(value),
  isolation: ({ isolation }: Info, value: string) => isolation === value,
} as const;

/** `KEY=VALUE`, repeatable; one match per key is enough, but all labels must match. */
export function collectFilter(text: string, earlier: readonly Filter[] = []): readonly Filter[] {
  const [, given = '', value = ''] = /^([a-z]+)=(.+)$/s.exec(text) ?? [];
  const key = given === 'ancestor' ? 'image' : given;
  if (!isKey(key))
    throw new InvalidArgumentError(`Give KEY=VALUE, with one of ${Object.keys(MATCHES).join(', ')}.`);
  if (key === 'status' && !Object.hasOwn(STATUSES, value))
    throw new InvalidArgumentError(`A status is one of ${Object.keys(STATUSES).join(', ')}.`);
  return [...earlier, { key, value }];
}

export function passesFilters(info: Info, filters: readonly Filter[]): boolean {
  const matches = ({ key, value }: Filter) => MATCHES[key](info, value);
  return filters.every(
    (filter) =>
      matches(filter) ||
      (filter.key !== 'label' && filters.some((other) => other.key === filter.key && matches(other))),
  );
}

function isKey(text: string): text is keyof typeof MATCHES {
  return Object.hasOwn(MATCHES, text);
}

/** `KEY` alone: the label exists, with any value. */
function hasLabel(labels: Readonly<Record<string, string>>, wanted: string): boolean {
  const [, key = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(wanted) ?? [];
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

/** Drops the default parts of a reference. */
function shortImage(reference: string): string {
  return reference
    .replace(/^docker\.io\/(?:library\/)?/, '')
    .replace(/^svc\//, '')
    .replace(/:latest$/, '');
}
