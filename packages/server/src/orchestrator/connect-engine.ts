import { EngineClient, readProcessState, Watchdog } from '@svc/engine/client';
import type { Logger } from 'pino';
import { enginePorts } from './engine-ports.ts';
import type { OrchestratorPorts } from './ports.ts';

export interface ConnectedOrchestrator {
  readonly ports: OrchestratorPorts;
  close(): void;
}

/** The engine of this host. Nothing is sent before the first call. */
export function connectEngine(socketPath: string, logger: Logger): ConnectedOrchestrator {
  const engine = new EngineClient({ socketPath });
  const watchdog = watchEngine(engine, logger);
  return { ports: enginePorts(engine), close: () => watchdog.close() };
}

/** Treats a hanging engine as unavailable: pending and later requests fail at once. */
function watchEngine(engine: EngineClient, logger: Logger): Watchdog {
  let last: { readonly pid: number; readonly startTime: string } | undefined;
  return new Watchdog({
    ask: async (signal) => (last = await engine.pulse(signal)),
    look: () => {
      const state = last && readProcessState(last.pid);
      // The pid that the engine tells may be another process to us: when it is in a container, or has ended and its pid was used again.
      return state?.startTime === last?.startTime ? state : undefined;
    },
    onFrozen: (reason) => {
      logger.warn({ reason }, 'the engine hangs');
      engine.setAbsence(reason);
    },
    onBack: () => engine.setAbsence(null),
  });
}
