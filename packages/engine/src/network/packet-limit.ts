/**
 * The limit of packets per second and direction of a sandbox: several times the need of a busy service, because segments that travel
 * together count once, and a fraction of what a host can forward.
 */
export const DEFAULT_MAX_PACKETS = 100_000;
