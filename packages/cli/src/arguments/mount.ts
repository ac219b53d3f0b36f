import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';

interface MountOptions {
  readonly guest: string;
  readonly options: { readonly readonly: boolean };
}

/** A volume, or a folder of the machine that the server runs on. */
type Mount = MountOptions &
  ({ readonly type: 'named'; readonly name: string } | { readonly type: 'bind'; readonly host: string });

/** `VOLUME:/path` or `FOLDER:/path`, with `:ro` behind it or without, given any number of times. */
export function parseMount(text: string, earlier: readonly Mount[] = []): Mount[] {
  const [source = '', guest = '', mode = 'rw', ...rest] = text.split(':');
  if (source === '' || !guest.startsWith('/') || !['ro', 'rw'].includes(mode) || rest.length > 0)
    throw new InvalidArgumentError('Give VOLUME:/path, FOLDER:/path, or one of them with :ro.');
  const options = { readonly: mode === 'ro' };
  if (isPath(source)) return [...earlier, { type: 'bind', host: resolve(source), guest, options }];
  return [...earlier, { type: 'named', name: source, guest, options }];
}

/** As docker tells them apart: names of volumes have neither dots at their beginning nor slashes. */
function isPath(source: string): boolean {
  return source.includes('/') || source === '.' || source === '..';
}
