export interface Claimant {
  /** The maximum useful share. */
  readonly wantedBytes: number;
  /** A claimant with twice the weight gets twice as much when space is short. */
  readonly weight: number;
}

/**
 * Distributes space among claimants in order: the shares add up to at most the space, none exceeds what its claimant wants, and the rest
 * goes to the others.
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
