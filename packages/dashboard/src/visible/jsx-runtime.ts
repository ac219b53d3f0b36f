import { showLines } from '@svc/contract/visible';
import type { ElementType, Key, ReactElement } from 'react';
import { Fragment, jsx as jsxOfReact, jsxs as jsxsOfReact } from 'react/jsx-runtime';

export { Fragment } from 'react/jsx-runtime';
export type { JSX } from 'react';

/**
 * What every element of the dashboard is made with, in place of React's own: whatever text becomes a part of the page, and whoever chose
 * it, what nobody sees in it is shown. What is in a field stays as it is, since it is sent as it is.
 */
export function jsx(type: ElementType, props: object, key?: Key): ReactElement {
  return jsxOfReact(type, isDrawn(type) ? shown(props) : props, key);
}

export function jsxs(type: ElementType, props: object, key?: Key): ReactElement {
  return jsxsOfReact(type, isDrawn(type) ? shown(props) : props, key);
}

/** What is given to components comes here when they draw it. */
function isDrawn(type: unknown): boolean {
  return typeof type === 'string' || type === Fragment;
}

const TEXTS = ['children', 'title', 'aria-label', 'alt', 'placeholder'] as const;

type Texts = { readonly [Name in (typeof TEXTS)[number]]?: unknown };

function shown(props: Texts): object {
  let changed: Record<string, unknown> | undefined;
  for (const name of TEXTS) {
    const made = visibleOf(props[name]);
    if (made !== props[name]) changed = { ...(changed ?? props), [name]: made };
  }
  return changed ?? props;
}

/** The same value when there is nothing to show in it. */
function visibleOf(value: unknown): unknown {
  if (typeof value === 'string') return showLines(value);
  if (!Array.isArray(value)) return value;
  const all = value.map(visibleOf);
  return all.some((each, index) => each !== value[index]) ? all : value;
}
