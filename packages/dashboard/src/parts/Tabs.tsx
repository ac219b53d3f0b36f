import { useEffect, useRef } from 'react';
import { Link } from '../router/Link.tsx';

interface TabsProps {
  readonly label: string;
  /** Address and name. */
  readonly tabs: readonly { readonly href: string; readonly name: string }[];
  readonly current: string;
}

/** Views of one object. Each has an address, so they are links. */
export function Tabs({ label, tabs, current }: TabsProps) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone there is not room for all of them.
    element.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [current]);
  return (
    <nav ref={element} className="tabs" aria-label={label}>
      {tabs.map(({ href, name }) => (
        <Link key={href} href={href} aria-current={href === current ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
