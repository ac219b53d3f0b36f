import { UsageError } from '../usage-error.ts';

/** One side of a copy: a local path, a path in a named sandbox or volume, or a standard stream. */
export type CopyPlace =
  | { readonly kind: 'local'; readonly path: string }
  | { readonly kind: 'remote'; readonly name: string; readonly path: string }
  | { readonly kind: 'stream' };

/** `-`, `NAME:/path`, or a local path. A local path with a colon is written `./like:this`. */
export function parsePlace(text: string): CopyPlace {
  if (text === '-') return { kind: 'stream' };
  const [, name, path] = /^([^/.:][^/:]*):(.*)$/s.exec(text) ?? [];
  if (name === undefined || path === undefined) return { kind: 'local', path: text };
  if (!path.startsWith('/')) throw new UsageError(`paths in a sandbox begin with /\n  try: ${name}:/${path}`);
  return { kind: 'remote', name, path };
}
