/**
 * Packets that a sandbox may send in a second, and receive: several times what a busy service needs, for segments that travel together
 * count once, and a fraction of what a host passes on.
 */
export const DEFAULT_MAX_PACKETS = 100_000;
