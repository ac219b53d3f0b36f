import { useAccount, type Organization } from '../api/account.ts';
import { navigate } from '../router/location.ts';

export function OrganizationPicker({ current }: { readonly current: Organization | null }) {
  const { organizations } = useAccount();
  return (
    <div className="picker">
      <label htmlFor="organization">Organization</label>
      <select
        id="organization"
        value={current?.slug ?? ''}
        onChange={(event) => navigate(`/orgs/${encodeURIComponent(event.target.value)}`)}
      >
        {organizations.map(({ slug, name }) => (
          <option key={slug} value={slug}>
            {name === slug ? slug : `${name} (${slug})`}
          </option>
        ))}
      </select>
    </div>
  );
}
