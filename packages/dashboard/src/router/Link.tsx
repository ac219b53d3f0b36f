import type { AnchorHTMLAttributes, MouseEvent } from 'react';
import { navigate } from './location.ts';

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & {
  /** A path of this site. */
  readonly href: string;
};

/** A link to another page of the dashboard: the address changes without loading the site again. */
export function Link({ href, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={href} onClick={follow} {...rest} />;
}
