import { EmptyState } from '../parts/EmptyState.tsx';
import { Page } from '../parts/Page.tsx';
import { Link } from '../router/Link.tsx';

export function NotFound() {
  return (
    <Page title="Not found">
      <EmptyState icon="search" title="There is nothing at this address">
        <p>It may have been removed, or it belongs to an organization that you are not a member of.</p>
        <Link className="button" href="/">
          Go to the overview
        </Link>
      </EmptyState>
    </Page>
  );
}
