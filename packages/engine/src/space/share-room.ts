export interface Claimant {
  /** More than this is of no use to it. */
  readonly wantedBytes: number;
  /** Of two that want more than there is, one with twice the weight gets twice as much. */
  readonly weight: number;
}

/**
 * Shares room among those who might use it, in their order: what is given adds up to no more than there is, nobody gets more than it
 * wants, and what one does not want goes to the others.
 */
export function shareRoom(claimants: readonly Claimant[], roomBytes: number): number[] {
  const shares = claimants.map(() => 0);
  const eager = ({ wantedBytes, weight }: Claimant) => wantedBytes / weight;
  const modestFirst = [...claimants.entries()].toSorted(([, a], [, b]) => eager(a) - eager(b));
  let room = Math.max(0, roomBytes);
  let weights = claimants.reduce((sum, { weight }) => sum + weight, 0);
  for (const [index, { wantedBytes, weight }] of modestFirst) {
    const share = Math.floor(Math.min(wantedBytes, (room * weight) / weights));
    shares[index] = share;
    room -= share;
    weights -= weight;
  }
  return shares;
}
