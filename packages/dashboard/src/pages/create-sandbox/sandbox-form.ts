/** What is typed into the form. Lists are texts with one entry per line. */
export interface SandboxForm {
  readonly name: string;
  readonly image: string;
  /** The name of a snapshot to start from in place of an image; empty: none. */
  readonly snapshot: string;
  readonly command: string;
  readonly vcpus: string;
  readonly memoryMib: string;
  readonly diskMib: string;
  /** `KEY=VALUE` */
  readonly env: string;
  /** `key=value` */
  readonly labels: string;
  /** `VOLUME:/path` or `VOLUME:/path:ro` */
  readonly mounts: string;
  readonly reach: 'public' | 'named' | 'all' | 'none' | 'off';
  /** With reach `named`: a domain per line. */
  readonly domains: string;
  /** `ENV@host,host`: secrets of the organization. */
  readonly secrets: string;
  readonly isolation: 'auto' | 'microvm' | 'gvisor' | 'container';
  readonly isEphemeral: boolean;
  readonly idleMinutes: string;
  readonly maxMinutes: string;
}

export const EMPTY_FORM: SandboxForm = {
  name: '',
  image: '',
  snapshot: '',
  command: '',
  vcpus: '1',
  memoryMib: '512',
  diskMib: '',
  env: '',
  labels: '',
  mounts: '',
  reach: 'public',
  domains: '',
  secrets: '',
  isolation: 'auto',
  isEphemeral: false,
  idleMinutes: '',
  maxMinutes: '',
};

/** Lines that are not empty, without the space around them. */
export function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Words as a shell splits them, as far as quotes go. */
export function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? '',
  );
}
