import { UsageError } from '../usage-error.ts';

/** One side of a copy: a path of this machine, a path in something that has a name, or our own stream. */
export type CopyPlace =
  | { readonly kind: 'local'; readonly path: string }
  | { readonly kind: 'remote'; readonly name: string; readonly path: string }
  | { readonly kind: 'stream' };

/** `-`, `NAME:/path`, or a path here. A path here that has a colon is written `./like:this`. */
export function parsePlace(text: string): CopyPlace {
  if (text === '-') return { kind: 'stream' };
  const [, name, path] = /^([^/.:][^/:]*):(.*)$/s.exec(text) ?? [];
  if (name === undefined || path === undefined) return { kind: 'local', path: text };
  if (!path.startsWith('/')) throw new UsageError(`paths in a sandbox begin with /\n  try: ${name}:/${path}`);
  return { kind: 'remote', name, path };
}
