import { useOrganization } from '../../api/organization.ts';
import { Link } from '../../router/Link.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** Why it failed, and a form that is filled with what was asked for. */
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
