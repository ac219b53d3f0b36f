/** Exit codes of `svc server start`. `svc server start --help` lists them. */
export const EXIT = {
  /** Stopped by a signal, cleanly. */
  stopped: 0,
  failed: 1,
  /** A bad option. */
  usage: 2,
  /** Another server runs on the data folder. */
  alreadyRunning: 3,
  /** The address is taken. */
  addressInUse: 4,
} as const;
