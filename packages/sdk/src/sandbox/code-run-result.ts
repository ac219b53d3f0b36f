import type { RestCallOutput } from '../client/rest-call.ts';

type View = RestCallOutput<'code.run'>['results'][number];

/** A table as data, such as a data frame. */
export interface ResultTable {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** Rows of the whole table. */
  readonly row_count: number;
  /** There are more rows or columns than are here. */
  readonly truncated: boolean;
}

/** A chart as data. Which other fields there are depends on its type. */
export interface ResultChart {
  /** `line`, `scatter`, `bar`, `pie`, `box_and_whisker`, `superchart` with several charts as its elements, or `unknown`. */
  readonly type: string;
  readonly title: string | null;
  readonly elements: readonly unknown[];
  readonly [field: string]: unknown;
}

/** A value that code showed, in all of its forms. Its content comes from the sandbox and is as untrusted. */
export class CodeRunResult {
  /** By MIME type: text as it is, images and PDF in base64, JSON types as JSON. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The value of a last bare expression; others were shown on the way. */
  readonly isMainResult: boolean;
  /** Something of it is missing. */
  readonly isTruncated: boolean;
  /** The forms that were left out or cut, and why. */
  readonly leftOut: View['left_out'];

  /** Made by `runCode`. */
  constructor(view: View) {
    this.data = view.data;
    this.metadata = view.metadata;
    this.isMainResult = view.is_main_result;
    this.isTruncated = view.truncated;
    this.leftOut = view.left_out;
  }

  get text(): string | undefined {
    return this.#textOf('text/plain');
  }

  get html(): string | undefined {
    return this.#textOf('text/html');
  }

  get markdown(): string | undefined {
    return this.#textOf('text/markdown');
  }

  get svg(): string | undefined {
    return this.#textOf('image/svg+xml');
  }

  /** Such as a chart. */
  get png(): Uint8Array | undefined {
    return this.bytes('image/png');
  }

  get json(): unknown {
    return this.data['application/json'];
  }

  get table(): ResultTable | undefined {
    // The server drops forms that do not have this shape.
    return this.data['application/vnd.svc.table+json'] as ResultTable | undefined;
  }

  /** What a figure of matplotlib shows, as data: its type, axes and points. */
  get chart(): ResultChart | undefined {
    const form = this.data['application/vnd.svc.chart+json'];
    return isChart(form) ? form : undefined;
  }

  /** The content of a form, such as `image/jpeg`, as bytes for a file. */
  bytes(type: string): Uint8Array | undefined {
    const form = this.data[type];
    if (form === undefined) return undefined;
    if (typeof form !== 'string') return new TextEncoder().encode(JSON.stringify(form));
    if (isText(type)) return new TextEncoder().encode(form);
    return Uint8Array.from(atob(form), (character) => character.codePointAt(0) ?? 0);
  }

  #textOf(type: string): string | undefined {
    const form = this.data[type];
    return typeof form === 'string' ? form : undefined;
  }
}

function isText(type: string): boolean {
  return type === 'image/svg+xml' || !(/^(?:image|audio|video)\//.test(type) || type === 'application/pdf');
}

/** Code may show anything as a chart. */
function isChart(form: unknown): form is ResultChart {
  if (typeof form !== 'object' || form === null) return false;
  const { type, elements } = form as Partial<Record<string, unknown>>;
  return typeof type === 'string' && Array.isArray(elements);
}
