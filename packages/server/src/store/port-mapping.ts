/** A port of the host that leads to a port inside a sandbox. */
export interface PortMapping {
  readonly host: number;
  readonly guest: number;
  /** The address of the host that it is on; absent: loopback. */
  readonly bind?: string;
  /** Absent: TCP. */
  readonly protocol?: 'udp';
}
