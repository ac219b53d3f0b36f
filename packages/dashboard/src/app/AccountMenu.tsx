import { useAccount } from '../api/account.ts';
import { useAction } from '../api/use-call.ts';
import { Button } from '../parts/Button.tsx';
import { Icon } from '../parts/Icon.tsx';
import { showToast } from '../parts/toast-list.ts';
import { Link } from '../router/Link.tsx';
import { useTheme, type Theme } from './theme.ts';

const THEME_WORDS: Readonly<Record<Theme, string>> = {
  system: 'Theme: as the system',
  light: 'Theme: light',
  dark: 'Theme: dark',
};

/** The account, the theme, and signing out. */
export function AccountMenu() {
  const { user, session } = useAccount();
  const [theme, nextTheme] = useTheme();
  // Reloads the page, so that no data of this user is left in memory for the next one.
  const signOut = useAction('session.end', { onDone: () => location.assign('/') });
  return (
    <div className="account">
      <ul className="navigation-group">
        <li>
          <a href="/docs">
            <Icon name="book" /> API reference
          </a>
        </li>
        <li>
          <a href="/start">
            <Icon name="terminal" /> CLI, SDK and MCP
          </a>
        </li>
      </ul>
      <Link className="account-name" href="/account" title={user.email}>
        {user.display_name ?? user.email}
      </Link>
      <div className="account-actions">
        <Button
          look="quiet"
          icon={theme === 'dark' ? 'moon' : 'sun'}
          aria-label={THEME_WORDS[theme]}
          title={THEME_WORDS[theme]}
          onClick={nextTheme}
        />
        {session === null ? null : (
          <Button
            look="quiet"
            icon="exit"
            isBusy={signOut.isPending}
            onClick={() =>
              signOut.mutate({}, { onError: (error) => showToast('You are still signed in', error) })
            }
          >
            Sign out
          </Button>
        )}
      </div>
    </div>
  );
}
