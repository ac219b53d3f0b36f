import { showLines } from '@svc/contract/visible';
import type { ElementType, Key, ReactElement } from 'react';
import { Fragment, jsx as jsxOfReact, jsxs as jsxsOfReact } from 'react/jsx-runtime';

export { Fragment } from 'react/jsx-runtime';
export type { JSX } from 'react';

/**
 * The JSX runtime of the dashboard, in place of React's own: it makes invisible characters visible in every text of the page. The
 * value of an input is left unchanged, because it is sent unchanged.
 */
export function jsx(type: ElementType, props: object, key?: Key): ReactElement {
  return jsxOfReact(type, isDrawn(type) ? shown(props) : props, key);
}

export function jsxs(type: ElementType, props: object, key?: Key): ReactElement {
  return jsxsOfReact(type, isDrawn(type) ? shown(props) : props, key);
}

/** Only host elements are handled; props of components arrive here when they render. */
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

/** Returns the same value when it has no invisible characters. */
function visibleOf(value: unknown): unknown {
  if (typeof value === 'string') return showLines(value);
  if (!Array.isArray(value)) return value;
  const all = value.map(visibleOf);
  return all.some((each, index) => each !== value[index]) ? all : value;
}
