import type { Organization } from '../api/account.ts';
import { canAct } from '../api/organization.ts';
import { Icon } from '../parts/Icon.tsx';
import { Link } from '../router/Link.tsx';
import { fillPath } from '../router/match-path.ts';
import { ROUTES } from './routes.ts';

/** From the table of routes: its entries, by group. */
export function Navigation({
  organization,
  path,
}: {
  readonly organization: Organization;
  readonly path: string;
}) {
  const entries = ROUTES.filter(({ least = 'member' }) => canAct(organization.role, least)).flatMap((route) =>
    route.entry === undefined
      ? []
      : [{ ...route.entry, href: fillPath(route.path, { slug: organization.slug }) }],
  );
  const groups = Map.groupBy(entries, ({ group }) => group);
  const home = `/orgs/${organization.slug}`;
  // The overview is the start of every other address.
  const isCurrent = (href: string) => path === href || (href !== home && path.startsWith(`${href}/`));
  return (
    <nav className="navigation" aria-label="Main">
      {[...groups].map(([group, members]) => (
        <div key={group} className="navigation-group">
          <h2>{group}</h2>
          <ul>
            {members.map(({ href, label, icon }) => (
              <li key={href}>
                <Link href={href} aria-current={isCurrent(href) ? 'page' : undefined}>
                  <Icon name={icon} />
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}
