import { useCall } from '../api/use-call.ts';

/** The operator's ceiling for network rules; see decision 167. */
export function CeilingHint() {
  const { data: capabilities } = useCall('capabilities.get', {});
  return capabilities === undefined ? null : describeCeiling(capabilities.network.ceiling);
}

function describeCeiling(words: readonly string[]): string {
  if (words.includes('all')) return 'The operator of this server allows rules to open every address.';
  const most = words.length === 0 ? 'no address' : words.map(nameOf).join(', ');
  return `Most that the operator of this server allows: ${most}.`;
}

function nameOf(word: string): string {
  return word === 'public' ? 'public addresses' : word.replace('_', '-');
}
