import { useOrganization } from '../../api/organization.ts';
import { Link } from '../../router/Link.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** The reason of a failure, and a link to a form with the same settings. */
export function FailurePanel({
  sandbox: { id, last_failure_message: message },
}: {
  readonly sandbox: SandboxRecord;
}) {
  const { slug } = useOrganization();
  return (
    <div className="failure" role="alert">
      <p>
        <code className="code">failed</code> {message ?? 'The reason is not known.'}
      </p>
      <Link className="button" href={`/orgs/${slug}/sandboxes/new?from=${id}`}>
        Try again with another image
      </Link>
    </div>
  );
}
