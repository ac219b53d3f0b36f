/** The parts of a schema that are read to describe a problem. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema | readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
}

/** Where a value breaks its schema, as a caller would write the place, and what is wrong there. */
export interface Problem {
  readonly field: string;
  readonly reason: string;
}

export function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldAt(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

export function itemAt(path: string, index: number): string {
  return `${path}[${index}]`;
}
