/** A port of the host that is forwarded to a port inside a sandbox. */
export interface PortMapping {
  readonly host: number;
  readonly guest: number;
  /** The host address to listen on; absent: loopback. */
  readonly bind?: string;
  /** Absent: TCP. */
  readonly protocol?: 'udp';
}
