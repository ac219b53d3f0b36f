import type { SandboxStatus } from '@svc/contract/rest';
import { createShapeOf, isSandboxView } from '../../handlers/sandboxes/sandbox-view.ts';

/** The published client of the reference product, which decodes less than it is sent. */
const REFERENCE_CLIENT = /^microsandbox-sdk\//;

/** States that it does not know make it refuse the whole answer; these are the nearest that it does know. */
const KNOWN_STATUS: Partial<Record<SandboxStatus, SandboxStatus>> = {
  temporarily_unavailable: 'starting',
  recovery_decision_required: 'failed',
};

/** Every concession to that client; all others get the output as it is. */
export function applyConcessions(output: unknown, userAgent: string): unknown {
  if (!REFERENCE_CLIENT.test(userAgent) || !isObject(output)) return output;
  const { data } = output;
  return Array.isArray(data) ? { ...output, data: data.map(concede) } : concede(output);
}

/** It reads `spec` in the shape that it sends, and silently does without in any other. */
function concede(item: unknown): unknown {
  if (!isObject(item)) return item;
  if (!isSandboxView(item)) return item;
  const spec = createShapeOf(item);
  const status = item['status'] as SandboxStatus;
  return { ...item, ...(spec === undefined ? {} : { spec }), status: KNOWN_STATUS[status] ?? status };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
