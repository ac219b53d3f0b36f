import { useCall } from '../api/use-call.ts';

/** What the operator of the server lets network rules open at most; see decision 167. */
export function CeilingHint() {
  const { data: capabilities } = useCall('capabilities.get', {});
  return capabilities === undefined ? null : describeCeiling(capabilities.network.ceiling);
}

function describeCeiling(words: readonly string[]): string {
  if (words.includes('all')) return 'The operator of this server lets rules open every address.';
  const most = words.length === 0 ? 'nothing' : words.map((word) => word.replace('_', '-')).join(', ');
  return `The operator of this server lets rules open at most: ${most}.`;
}
