import type { HostCalls, LaunchRequest } from '../host/host-calls.ts';

/**
 * Runs a runtime's command, whose PID 1 inherits the streams. The helper starts it, because Node copies its whole process to start a
 * program and blocks meanwhile.
 * Resolves with the exit code. Rejects when the program cannot be executed, and when `signal` aborts, after it was killed.
 */
export async function launch(
  hostCalls: Pick<HostCalls, 'launch'>,
  request: Omit<LaunchRequest, 'environment'>,
  signal: AbortSignal,
): Promise<number> {
  return hostCalls.launch({ ...request, environment: RUNTIME_ENVIRONMENT }, signal);
}

/** The whole environment of a runtime's program. Set-up installs programs that the distribution lacks in /opt/svc/bin. */
export const RUNTIME_ENVIRONMENT = {
  PATH: '/opt/svc/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};
