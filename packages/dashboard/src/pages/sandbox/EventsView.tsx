import { EventList } from '../audit/EventList.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** What was done with it, by whom: those events of the organization that are about it. */
export function EventsView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  return <EventList sandboxId={sandbox.id} />;
}
