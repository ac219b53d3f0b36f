import type { RestCallInput } from '@svc/sdk';

type Host = RestCallInput<'secrets.put'>['body']['allowed_hosts'][number];

/** `api.example.com, *.example.org` */
export function readHosts(text: string): Host[] {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((value) => ({ type: value.startsWith('*.') ? 'wildcard' : 'exact', value }));
}

export function spellHost({ value }: Host): string {
  return value;
}
