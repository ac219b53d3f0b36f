import { UsageError } from '../usage-error.ts';
import { parsePlace, type CopyPlace } from './sandbox-path.ts';

type RemotePlace = Extract<CopyPlace, { readonly kind: 'remote' }>;

/** The two sides of a copy, and which one is remote. @throws UsageError `hint` unless exactly one is */
export function parseCopy(
  fromText: string,
  toText: string,
  hint: string,
): { readonly from: CopyPlace; readonly to: CopyPlace; readonly remote: RemotePlace } {
  const [from, to] = [parsePlace(fromText), parsePlace(toText)];
  const remote = from.kind === 'remote' ? from : to;
  if (remote.kind !== 'remote' || (from.kind === 'remote' && to.kind === 'remote'))
    throw new UsageError(hint);
  return { from, to, remote };
}
