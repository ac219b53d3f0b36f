import { setTimeout as delay } from 'node:timers/promises';
import { EngineClient, Watchdog } from '@svc/engine/client';
import type { Logger } from 'pino';
import { connectEngine, type ConnectedOrchestrator } from './connect-engine.ts';
import { enginePorts } from './engine-ports.ts';
import { fleetPorts, type FleetStore } from './fleet-ports.ts';
import type { ListedNode } from './read-nodes.ts';

/** A host that has gone says nothing, so a question is given up and asked anew on another connection. */
const PULSE_TIMEOUT_MS = 5000;
const RETRY_MS = 500;

/** The engines of several nodes. Nothing is sent before the first call but the questions whether each answers. */
export function connectNodes(
  nodes: readonly ListedNode[],
  store: FleetStore,
  logger: Logger,
): ConnectedOrchestrator {
  const members = nodes.map((node) => ({ name: node.name, ...connectNode(node, logger) }));
  return {
    ports: fleetPorts(members, store),
    close: () => members.forEach((member) => member.close()),
  };
}

function connectNode({ name, address }: ListedNode, logger: Logger): ConnectedOrchestrator {
  if ('socketPath' in address) return connectEngine(address.socketPath, logger);
  const engine = new EngineClient(address);
  const watchdog = new Watchdog({
    ask: async (signal) => await untilAnswered(engine, signal),
    // Of a process on another host only its answers are known.
    look: () => undefined,
    onFrozen: (reason) => {
      logger.warn({ node: name, reason }, 'the engine of a node does not answer');
      engine.setAbsence(reason);
    },
    onBack: () => engine.setAbsence(null),
  });
  const close = () => {
    watchdog.close();
    engine.close();
  };
  return { ports: enginePorts(engine), close };
}

async function untilAnswered(engine: EngineClient, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await engine.pulse(AbortSignal.any([signal, AbortSignal.timeout(PULSE_TIMEOUT_MS)]));
      return;
    } catch {
      // Refused, cut off or too late: it is asked again, and the watchdog counts the time.
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
