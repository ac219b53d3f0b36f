export interface SpaceRequest {
  /** The maximum useful share. */
  readonly wantedBytes: number;
  /** A request with twice the weight gets twice as much when space is short. */
  readonly weight: number;
}

/**
 * Distributes space among requests in order: the shares add up to at most the space, none exceeds what its request wants, and the rest
 * goes to the others.
 */
export function distributeSpace(requests: readonly SpaceRequest[], roomBytes: number): number[] {
  const shares = requests.map(() => 0);
  const eager = ({ wantedBytes, weight }: SpaceRequest) => wantedBytes / weight;
  const modestFirst = [...requests.entries()].toSorted(([, a], [, b]) => eager(a) - eager(b));
  let room = Math.max(0, roomBytes);
  let weights = requests.reduce((sum, { weight }) => sum + weight, 0);
  for (const [index, { wantedBytes, weight }] of modestFirst) {
    const share = Math.floor(Math.min(wantedBytes, (room * weight) / weights));
    shares[index] = share;
    room -= share;
    weights -= weight;
  }
  return shares;
}
