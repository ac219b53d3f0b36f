import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';

interface MountOptions {
  readonly guest: string;
  readonly options: { readonly readonly: boolean };
}

/** A volume, or a folder of the machine that the server runs on. */
type Mount = MountOptions &
  ({ readonly type: 'named'; readonly name: string } | { readonly type: 'bind'; readonly host: string });

/** `VOLUME:/path` or `FOLDER:/path`, optionally with `:ro`; repeatable. */
export function parseMount(text: string, earlier: readonly Mount[] = []): Mount[] {
  const [source = '', guest = '', mode = 'rw', ...rest] = text.split(':');
  if (source === '' || !guest.startsWith('/') || !['ro', 'rw'].includes(mode) || rest.length > 0)
    throw new InvalidArgumentError('Give VOLUME:/path, FOLDER:/path, or one of them with :ro.');
  const options = { readonly: mode === 'ro' };
  if (isPath(source)) return [...earlier, { type: 'bind', host: resolve(source), guest, options }];
  return [...earlier, { type: 'named', name: source, guest, options }];
}

/** Docker's rule: names of volumes have no leading dot and no slash. */
function isPath(source: string): boolean {
  return source.includes('/') || source === '.' || source === '..';
}
