import { Page } from '../../parts/Page.tsx';
import { EventList } from './EventList.tsx';

/** The audit events of the organization. */
export function AuditPage() {
  return (
    <Page
      title="Audit log"
      hint="Newest first. Each event has the hash of the one before, so that a removed event is noticed."
    >
      <EventList />
    </Page>
  );
}
