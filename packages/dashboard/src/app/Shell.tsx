import { useEffect, useState, type ReactNode } from 'react';
import { useAccount, type Organization } from '../api/account.ts';
import { Button } from '../parts/Button.tsx';
import { Link } from '../router/Link.tsx';
import { usePath } from '../router/location.ts';
import { AccountMenu } from './AccountMenu.tsx';
import { Mark } from './Mark.tsx';
import { Navigation } from './Navigation.tsx';
import { OrganizationPicker } from './OrganizationPicker.tsx';

interface ShellProps {
  readonly organization: Organization | null;
  readonly children: ReactNode;
}

/** The frame around every page: breadcrumb, navigation and account. */
export function Shell({ organization, children }: ShellProps) {
  const path = usePath();
  const { session } = useAccount();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return (
    <div
      className={isOpen ? 'shell open' : 'shell'}
      onKeyDown={({ key }) => key === 'Escape' && setOpen(false)}
    >
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="top-bar">
        <Link className="brand" href="/" aria-label="svc: overview">
          <Mark /> svc
        </Link>
        <Button
          look="quiet"
          icon="menu"
          aria-expanded={isOpen}
          aria-controls="side"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </Button>
      </div>
      <aside id="side" className="side">
        <Link className="brand" href="/" aria-label="svc: overview">
          <Mark /> svc
        </Link>
        <OrganizationPicker current={organization} />
        {organization === null ? null : <Navigation organization={organization} path={path} />}
        <AccountMenu />
      </aside>
      <button
        type="button"
        className="side-cover"
        tabIndex={-1}
        aria-label="Close the menu"
        onClick={() => setOpen(false)}
      />
      <main id="content" tabIndex={-1}>
        {session === null ? (
          <p className="banner">
            <strong>Development mode.</strong> There is no sign-in: every client that can connect has full
            access.
          </p>
        ) : null}
        {children}
      </main>
    </div>
  );
}
