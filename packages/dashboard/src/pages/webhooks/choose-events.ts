import {
  EVENT_TYPES,
  type EventCategory,
  type EventPattern,
  type EventType,
} from '@svc/contract/event-types';

export interface EventGroup {
  readonly category: EventCategory;
  readonly types: readonly { readonly type: EventType; readonly meaning: string }[];
}

/** All event types by category, in the order of the contract. */
export const EVENT_GROUPS: readonly EventGroup[] = [
  ...Map.groupBy(
    // Its keys are the types.
    (Object.keys(EVENT_TYPES) as EventType[]).map((type) => ({ type, ...EVENT_TYPES[type] })),
    ({ category }) => category,
  ),
].map(([category, types]) => ({ category, types }));

export type Chosen = readonly EventPattern[];

/** A chosen category includes types that are added to it later; a list of all its types does not. */
export function toggleCategory(chosen: Chosen, { category, types }: EventGroup): Chosen {
  const others = chosen.filter((pattern) => !types.some(({ type }) => type === pattern));
  const whole = `${category}.*` as const;
  return chosen.includes(whole) ? others.filter((pattern) => pattern !== whole) : [...others, whole];
}

/** Removing one type from a chosen category leaves the other types. */
export function toggleType(chosen: Chosen, { category, types }: EventGroup, type: EventType): Chosen {
  const whole = `${category}.*` as const;
  if (chosen.includes(whole)) {
    const rest = types.map((each) => each.type).filter((each) => each !== type);
    return [...chosen.filter((pattern) => pattern !== whole), ...rest];
  }
  return chosen.includes(type) ? chosen.filter((pattern) => pattern !== type) : [...chosen, type];
}

/** How many of a category. */
export function countChosen(chosen: Chosen, { category, types }: EventGroup): number {
  if (chosen.includes(`${category}.*`)) return types.length;
  return types.filter(({ type }) => chosen.includes(type)).length;
}
