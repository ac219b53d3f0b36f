/** The isolation classes, strongest first. */
export const ISOLATIONS = ['microvm', 'gvisor', 'container'] as const;

export type Isolation = (typeof ISOLATIONS)[number];
