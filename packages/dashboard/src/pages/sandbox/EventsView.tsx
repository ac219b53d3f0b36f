import { EventList } from '../audit/EventList.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** The audit events of the sandbox. */
export function EventsView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  return <EventList sandboxId={sandbox.id} />;
}
