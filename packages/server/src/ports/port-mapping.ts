/** A TCP port on the loopback interface of the host that leads to a port inside a sandbox. */
export interface PortMapping {
  readonly host: number;
  readonly guest: number;
}
