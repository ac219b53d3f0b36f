import { InvalidArgumentError } from 'commander';

interface NamedMount {
  readonly type: 'named';
  readonly name: string;
  readonly guest: string;
  readonly options: { readonly readonly: boolean };
}

/** `VOLUME:/path` or `VOLUME:/path:ro`, given any number of times. */
export function parseMount(text: string, earlier: readonly NamedMount[] = []): NamedMount[] {
  const [name = '', guest = '', mode = 'rw', ...rest] = text.split(':');
  if (name === '' || !guest.startsWith('/') || !['ro', 'rw'].includes(mode) || rest.length > 0)
    throw new InvalidArgumentError('Give VOLUME:/path or VOLUME:/path:ro.');
  return [...earlier, { type: 'named', name, guest, options: { readonly: mode === 'ro' } }];
}
